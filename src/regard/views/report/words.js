"use strict";
// Chinese translations of headings, metrics and column names; values and sentences stay in English.
(() => {
  const regard = window.regard;
  const zh = {
    "regard: training run": "regard：训练运行", "regard: comparison of training runs": "regard：训练运行的比较", "not finished": "未完成",
    "Training": "训练", "Scores": "得分", "Details": "详情", "Samples": "样例", "Data": "数据", "Settings": "设置",
    "Diagnosis": "诊断", "Frequencies": "频率", "Best models": "最佳模型", "Settings that differ": "不同的设置",
    "Changed from the defaults": "与默认值不同", "Set automatically": "自动设定", "Complete configuration": "完整配置",
    "parameters": "参数量", "time": "用时", "steps": "步数", "epochs": "轮数", "padding": "填充", "device": "设备", "version": "版本",
    "Loss, nats per token": "损失（奈特/词元）", "Loss, nats per example": "损失（奈特/样本）", "Loss": "损失",
    "Loss, nats per token, dev": "验证集损失（奈特/词元）", "Loss, nats per token, train": "训练损失（奈特/词元）",
    "Loss, nats per example, dev": "验证集损失（奈特/样本）", "Loss, nats per example, train": "训练损失（奈特/样本）",
    "Loss, dev": "验证集损失", "Loss, train": "训练损失",
    "Learning rate": "学习率", "Gradient norm": "梯度范数", "Tokens per second": "每秒词元数", "train": "训练", "dev": "验证",
    "higher is better": "越高越好", "lower is better": "越低越好", "x axis": "横轴", "minutes": "分钟",
    "metric": "指标", "score": "得分", "baseline": "基线", "95 % interval": "95 % 区间", "0 to 100": "0 至 100", "run": "运行", "best step": "最佳步", "tokens/s": "每秒词元数", "state": "状态",
    "source": "源文", "prediction": "预测", "reference": "参考", "label": "标签", "examples": "样本数", "predicted": "预测数",
    "precision": "精确率", "recall": "召回率", "F1, 0 to 100": "F1，0 至 100", "target": "目标",
    "Confusion matrix": "混淆矩阵", "rows: expected, columns: predicted": "行：参考标签，列：预测标签",
    "Calibration (reliability diagram)": "校准（可靠性图）", "Predicted and expected values": "预测值与参考值",
    "Rank-frequency plot (log-log)": "排名-频次图（双对数坐标）",
    "n-grams": "n 元语法", "total": "总数", "distinct": "不同", "hapaxes": "仅出现一次", "no score yet": "尚无得分",
    "exact match": "完全匹配", "symbol error rate (PER for phonemes)": "符号错误率（音素时即 PER）", "Other metrics": "其他指标", "character error rate": "字符错误率", "word error rate": "词错误率",
    "BLEU": "BLEU", "chrF": "chrF", "short-sentence BLEU": "短句 BLEU", "accuracy": "准确率", "F1": "F1", "span F1": "片段 F1",
    "macro F1": "宏平均 F1", "accuracy on unknown words": "未知词准确率", "sentence accuracy": "整句准确率",
    "subset accuracy": "子集准确率", "log loss (nats)": "对数损失（奈特）", "calibration error": "校准误差", "R\u00b2": "R\u00b2",
    "root mean squared error": "均方根误差", "mean absolute error": "平均绝对误差", "loss (nats)": "损失（奈特）",
    "perplexity": "困惑度", "bits per character": "每字符比特数",
  };
  const TRANSLATED = "h2, section > h3, thead th, .facts dt, summary, legend, .choice label, figcaption > span, .headline .label, table.scores td:first-child, .comparison tbody th, .eyebrow > span";
  const isText = (node) => !node.closest(".predictions, .comparison thead, .by-label td"); // not names of the user

  const devMetric = (text) => {
    const found = /^(.+) \(dev\)$/.exec(text);
    const name = found && (zh[found[1]] || zh[found[1][0].toLowerCase() + found[1].slice(1)]);
    return name ? `验证集${name}` : undefined;
  };
  const translate = (text) => regard.language === "zh" ? zh[text] || devMetric(text) || text : text;

  const texts = [];
  for (const node of document.querySelectorAll(TRANSLATED)) {
    if (!isText(node)) continue;
    for (const child of node.childNodes) {
      const text = child.nodeType === Node.TEXT_NODE ? child.data.trim() : "";
      if (text) texts.push([child, child.data, text]);
    }
  }
  const labels = [...document.querySelectorAll("[data-label]")].map((node) => [node, node.dataset.label]);

  const draw = () => {
    for (const [node, whole, text] of texts) node.data = whole.replace(text, () => translate(text));
    for (const [node, text] of labels) node.dataset.label = translate(text);
  };
  regard.switches(document.getElementById("switches"));
  draw();
  document.addEventListener("regard:language", draw);
})();
