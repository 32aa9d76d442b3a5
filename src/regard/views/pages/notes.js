"use strict";
// Chinese translations of the notes and of the description of a model.
(() => {
  const regard = window.regard = window.regard || {};

  // The keys are those of tasks/inspection/notes.py.
  const notes = {
    "attention.none": "该模型没有注意力。",
    "heads.skipped": "已跳过注意力头消融：{tokens} 个掩码词元耗时过长。",
    "gates.means": "门控只保留了平均值：数值超过 {limit} 个。",
    "unknown.p": "未知词元的概率为 <unk> 的概率。",
    "folded": "训练数据中没有的字符按以下方式读取：{changes}。",
    "smoothing": "训练时使用标签平滑 {rate}：正确词元的目标概率为 {percent} %，因此概率很少超过该值。",
    "sampled.tree": "输出由采样得到，没有搜索树（束搜索才有）。",
    "target.forced": "强制解码：目标由您给定。",
    "target.tree": "搜索树来自模型自己的搜索。",
    "target.coverage": "给定目标的得分不含覆盖惩罚。",
    "target.passes": "长度和各遍来自模型自己的搜索。",
    "fill.first": "概率、注意力和梯度来自第一遍，此时所有词元都被掩码；<eos> 的概率是该长度的概率。",
    "fill.eos": "概率、注意力和梯度来自第一遍，此时所有词元都被掩码。<eos> 之后的位置不属于输出。",
    "frames.parts": "每一帧都显示出来；{blank} 表示空白。相邻的相同词元算作一个。得分是输出的对数概率。",
    "continuation.greedy": "续写采用贪心搜索，最多 {limit} 个词元。",
    "continuation.sampled": "续写由采样得到，最多 {limit} 个词元。",
    "continuation.context": "续写在 {tokens} 个词元后停止：上下文长度为 {context}。",
    "ngram": "n 元语法模型没有注意力、层和梯度。",
    "masked.tokens": "每个词元依次被掩码；p 为原词元的概率。",
    "masked.ablation": "消融值为所有词元（依次掩码）的对数概率之和的变化。",
    "masked.attention": "注意力来自没有掩码的文本。",
    "crf": "输出层为 CRF（条件随机场）：标签的 p 是对所有标签序列求得的边缘概率，得分是整个标签序列的对数概率。",
    "vector": "向量作为一个位置读入，因此没有注意力。梯度是对标准化后的特征求得的。",
    "graph.cut": "有 {nodes} 个节点影响预测：只计算最近的 {limit} 个，因此数值是近似的。",
    "graph.shown": "两条边以内有 {nodes} 个节点，只显示 {limit} 个。",
    "picture.gradients": "显著性为梯度与输入之积。像素已标准化，因此平均颜色的显著性为零。",
    "picture.maps": "该模型没有特征图，因此没有类激活图。",
    "picture.filters": "该模型没有读取像素窗口的卷积核。",
    "picture.channels": "每层只显示平均值最大的特征图。",
    "positions.many": "已省略注意力：位置有 {count} 个，上限为 {limit}。",
    "number.gradients": "梯度是预测数值的梯度，单位与数值相同。",
    "number.heads": "梯度和消融都针对预测数值，单位与数值相同。",
    "number.several": "消融值为所有预测数值变化之和。",
  };

  // Kinds with a Chinese name; others keep the value of their setting.
  const kinds = {recurrent: "循环网络", window: "窗口", mlp: "多层感知机", linear: "线性", mean: "平均", max: "最大值", last: "末位", first: "首位", attention: "注意力", crf: "CRF"};
  const parts = {encoder: "编码器", decoder: "解码器", pool: "池化", pooling: "池化", head: "输出层"};

  const part = (one) => {
    if (one.part === "ngram") return `最长 ${one.order} 个词元的 n 元语法`;
    if (one.part === "engine") return `由 ${one.kind} 运行`;
    const inner = [one.cell && one.cell.toUpperCase(), one.bidirectional && "双向", one.attention && `注意力 ${one.attention}`].filter(Boolean);
    const name = `${parts[one.part] || one.part} ${kinds[one.kind] || one.kind}${inner.length ? `（${inner.join("，")}）` : ""}`;
    const sizes = [one.layers && `${one.layers} 层`, one.heads && `${one.heads} 头`, one.width && `宽度 ${one.width}`];
    return [name, ...sizes].filter(Boolean).join("，");
  };

  // A note in the language of the page; the English sentence if it is not translated.
  regard.noted = (text, note) => {
    const translated = regard.language === "zh" && note ? notes[note.key] : null;
    const format = new Intl.NumberFormat("zh");
    return translated ? translated.replace(/\{(\w+)\}/g, (whole, name) => format.format(note.values[name])) : text;
  };

  // One-line description of a model.
  regard.described = (model) => regard.language === "zh" && model.parts
    ? model.parts.map(part).join("；") : model.description;
})();
