"use strict";
// Headings, measures and names of columns in Chinese; numbers, texts and sentences stay as they are.
(() => {
  const regard = window.regard;
  const zh = {
    "A training run of regard": "regard 的一次训练", "A comparison of training runs of regard": "regard 多次训练的比较", "not finished": "未完成",
    "Training": "训练", "Scores": "得分", "Details": "详情", "Samples": "样例", "Data": "数据", "Settings": "设置",
    "Diagnosis": "诊断", "Frequencies": "频率", "Best models": "最佳模型", "Settings that differ": "不同的设置",
    "Changed from the defaults": "与默认值不同", "Chosen from the data": "根据数据选定", "The whole configuration": "完整配置",
    "parameters": "参数量", "time": "用时", "steps": "步数", "epochs": "轮数", "padding": "填充", "device": "设备", "version": "版本",
    "Loss, nats per token": "损失（奈特/符号）", "Loss, nats per example": "损失（奈特/样本）", "Loss": "损失",
    "Loss, nats per token, on dev": "验证集损失（奈特/符号）", "Loss, nats per token, in training": "训练损失（奈特/符号）",
    "Loss, nats per example, on dev": "验证集损失（奈特/样本）", "Loss, nats per example, in training": "训练损失（奈特/样本）",
    "Loss, on dev": "验证集损失", "Loss, in training": "训练损失",
    "Learning rate": "学习率", "Gradient norm": "梯度范数", "Tokens per second": "每秒词元数", "train": "训练", "dev": "验证",
    "higher is better": "越高越好", "lower is better": "越低越好", "over": "横轴", "minutes": "分钟",
    "measure": "指标", "score": "得分", "95 % interval": "95 % 区间", "0 to 100": "0 至 100", "run": "运行", "best step": "最佳步", "tokens/s": "符号/秒", "state": "状态",
    "source": "源文", "prediction": "输出", "reference": "参考", "label": "标签", "examples": "样本数", "given": "预测数",
    "precision": "精确率", "recall": "召回率", "F1, 0 to 100": "F1，0 至 100", "target": "目标",
    "Which label is taken for which": "哪个标签被当成哪个", "rows: right label, columns: given": "行：正确标签，列：预测标签",
    "Is it as often right as it is sure?": "把握与正确率是否一致？", "Predicted and right numbers": "预测值与正确值",
    "Count over rank, both by powers of ten": "频次随排名的变化（均为对数刻度）",
    "sequences": "序列", "in all": "总数", "different": "不同", "once": "仅一次", "no score yet": "尚无得分",
    "exact match": "完全匹配", "symbol error rate": "符号错误率", "character error rate": "字符错误率", "word error rate": "词错误率",
    "BLEU": "BLEU", "chrF": "chrF", "short-sentence BLEU": "短句 BLEU", "accuracy": "准确率", "F1": "F1", "span F1": "片段 F1",
    "macro F1": "宏平均 F1", "accuracy on unknown words": "未见词准确率", "sentence accuracy": "整句正确率",
    "subset accuracy": "全部标签正确率", "log loss (nats)": "对数损失（奈特）", "calibration error": "校准误差", "R\u00b2": "R\u00b2",
    "root mean squared error": "均方根误差", "mean absolute error": "平均绝对误差", "loss (nats)": "损失（奈特）",
    "perplexity": "困惑度", "bits per character": "每字符比特数",
  };
  const SPOKEN = "h2, section > h3, thead th, .facts dt, summary, legend, .choice label, figcaption > span, .headline .label, table.scores td:first-child, .beside tbody th, .eyebrow > span";
  const own = (node) => !node.closest(".answers, .beside thead, .by-label td"); // names that a user gave

  const measured = (text) => {
    const found = /^(.+) on dev$/.exec(text);
    const name = found && (zh[found[1]] || zh[found[1][0].toLowerCase() + found[1].slice(1)]);
    return name ? `验证集${name}` : undefined;
  };
  const said = (text) => regard.language === "zh" ? zh[text] || measured(text) || text : text;

  const texts = [];
  for (const node of document.querySelectorAll(SPOKEN)) {
    if (!own(node)) continue;
    for (const child of node.childNodes) {
      const text = child.nodeType === Node.TEXT_NODE ? child.data.trim() : "";
      if (text) texts.push([child, child.data, text]);
    }
  }
  const labels = [...document.querySelectorAll("[data-label]")].map((node) => [node, node.dataset.label]);

  const draw = () => {
    for (const [node, whole, text] of texts) node.data = whole.replace(text, () => said(text));
    for (const [node, text] of labels) node.dataset.label = said(text);
  };
  regard.switches(document.getElementById("switches"));
  draw();
  document.addEventListener("regard:language", draw);
})();
