"use strict";
// Sentences that come with the numbers in English, said in Chinese: notes, and what a model is.
(() => {
  const regard = window.regard = window.regard || {};

  // Under the keys of inspection/notes.py.
  const notes = {
    "attention.none": "该模型没有注意力。",
    "heads.dear": "未逐个屏蔽注意力头：{tokens} 个空缺耗时过长。",
    "gates.means": "门控只保留了平均值：数值超过 {most} 个。",
    "unknown.p": "训练中从未出现的符号，其 p 为 <unk> 的概率。",
    "drawn.tree": "输出由采样得到，因此没有搜索树；束搜索才有。",
    "target.given": "输出由您给定，模型按它逐步计算。",
    "target.tree": "搜索树来自模型自己的搜索。",
    "target.coverage": "给定输出的得分不含覆盖项。",
    "follows.best": "文本之后每次取概率最高的符号，最多 {most} 个符号。",
    "follows.drawn": "文本之后的内容由采样得到，最多 {most} 个符号。",
    "follows.room": "它在 {room} 个符号后结束：模型最多能回看 {reach} 个符号。",
    "counts": "n 元语法模型只做计数：没有注意力、层和梯度。",
    "gaps.hidden": "每个符号依次被遮住；p 为原处符号的概率。",
    "gaps.silenced": "屏蔽一个头的影响是所有符号（依次遮住）对数概率之和的变化。",
    "gaps.attention": "注意力来自没有遮住任何符号的文本。",
    "crf": "输出层为 CRF：一个标签的 p 是对其余词的所有标注方式求和的结果，得分是全部标签的联合对数概率。",
    "vector": "向量一次读入，因此没有注意力。梯度是对均值为 0、标准差为 1 的数值求得的，与模型读到的一致。",
    "number.gradients": "梯度是对所答数值本身求得的，单位与数值相同。",
    "number.heads": "梯度和屏蔽头的影响都以所答数值本身衡量，单位与数值相同。",
    "number.several": "屏蔽一个头的影响是所有数值变化之和。",
  };

  // Kinds that have a name in Chinese; others are called what their setting says.
  const kinds = {recurrent: "循环网络", window: "窗口", mlp: "多层感知机", linear: "线性", mean: "平均", max: "最大值", last: "末位", first: "首位", attention: "注意力", crf: "CRF"};
  const parts = {encoder: "编码器", decoder: "解码器", pool: "池化", head: "输出层"};

  const part = (one) => {
    if (one.part === "ngram") return `最长 ${one.order} 个符号的 n 元语法`;
    if (one.part === "engine") return `由 ${one.kind} 运行`;
    const inner = [one.cell && one.cell.toUpperCase(), one.bidirectional && "双向", one.attention && `注意力 ${one.attention}`].filter(Boolean);
    const name = `${parts[one.part] || one.part} ${kinds[one.kind] || one.kind}${inner.length ? `（${inner.join("，")}）` : ""}`;
    const sizes = [one.layers && `${one.layers} 层`, one.heads && `${one.heads} 头`, one.width && `宽度 ${one.width}`];
    return [name, ...sizes].filter(Boolean).join("，");
  };

  // A note in the language of the page; the sentence itself where it has no other.
  regard.noted = (text, note) => {
    const said = regard.language === "zh" && note ? notes[note.key] : null;
    const format = new Intl.NumberFormat("zh");
    return said ? said.replace(/\{(\w+)\}/g, (whole, name) => format.format(note.values[name])) : text;
  };

  // What a model is, in a line.
  regard.described = (model) => regard.language === "zh" && model.parts
    ? model.parts.map(part).join("；") : model.description;
})();
