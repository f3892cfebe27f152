"""A page on which labels are typed in: one HTML file that needs nothing else and saves a CSV."""

from __future__ import annotations

import json

from stopwise.logs.auditing.audit import AuditPlan

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
article{border:1px solid #ccc;border-radius:8px;padding:1rem;margin:1rem 0}
article.done{border-color:#009e73}.said{color:#555;font-size:.9rem;margin:.3rem 0}
.text{white-space:pre-wrap;margin:.4rem 0}button{font:inherit;margin:.2rem .3rem .2rem 0;
padding:.2rem .7rem}button.on{background:#009e73;color:#fff}input{font:inherit;padding:.2rem .4rem}
header{position:sticky;top:0;background:#fff;padding:.5rem 0;border-bottom:1px solid #ccc}
"""

_SCRIPT = """
const data = JSON.parse(document.getElementById('data').textContent);
const key = 'stopwise:' + data.file + ':' + data.items.map(i => i.item).join('|');
let labels = {};
try { labels = JSON.parse(localStorage.getItem(key) || '{}'); } catch (e) { labels = {}; }
const count = document.getElementById('count');
function keep() {
  try { localStorage.setItem(key, JSON.stringify(labels)); } catch (e) { /* private window */ }
  const done = data.items.filter(i => labels[i.item]).length;
  count.textContent = done + ' of ' + data.items.length + ' labelled';
}
function element(kind, text, parent, name) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (name) made.className = name;
  parent.appendChild(made);
  return made;
}
const main = document.querySelector('main');
for (const item of data.items) {
  const box = element('article', '', main);
  element('strong', item.item, box);
  if (item.text) element('div', item.text, box, 'text');
  if (item.said.length) element('div', item.said.join(' · '), box, 'said');
  const row = element('div', '', box);
  const buttons = data.choices.map(choice => element('button', choice, row));
  const typed = element('input', '', row);
  typed.placeholder = 'another answer';
  function show() {
    const label = labels[item.item] || '';
    box.classList.toggle('done', label !== '');
    buttons.forEach(b => b.classList.toggle('on', b.textContent === label));
    if (document.activeElement !== typed) typed.value = data.choices.includes(label) ? '' : label;
    keep();
  }
  buttons.forEach(b => b.onclick = () => {
    labels[item.item] = labels[item.item] === b.textContent ? '' : b.textContent;
    show();
  });
  typed.oninput = () => { labels[item.item] = typed.value.trim(); show(); };
  show();
}
function cell(text) { return '"' + String(text).replace(/"/g, '""') + '"'; }
document.getElementById('save').onclick = () => {
  const lines = ['item,label'];
  for (const item of data.items) lines.push(cell(item.item) + ',' + cell(labels[item.item] || ''));
  const link = document.createElement('a');
  const file = new Blob([lines.join('\\n') + '\\n'], {type: 'text/csv'});
  link.href = URL.createObjectURL(file);
  link.download = data.file;
  link.click();
};
"""

MOST_CHOICES = 20


def labelling_page(plan: AuditPlan, next_items: tuple[int, ...], file: str, *, blind: bool) -> str:
    """The next items as a page; "Save" writes the file that `stopwise audit` reads.

    What was typed in is kept by the browser until then. Items and outputs are put in as data and
    shown as text, so that nothing in a log can run.

    Args:
        next_items: by row number.
        file: the name under which the labels are saved.
        blind: do not show what the stages said.
    """
    rows = plan.rows
    choices = list(rows.labels) if len(rows.labels) <= MOST_CHOICES else []
    items = []
    for at in next_items:
        outputs = ["no answer" if code < 0 else rows.labels[code] for code in rows.codes[at]]
        said = [f"{stage}: {output}" for stage, output in zip(rows.stages, outputs, strict=True)]
        items.append(
            {
                "item": rows.items[at],
                "text": "" if rows.shown is None else rows.shown[at],
                "said": [] if blind else said,
            }
        )
    data = json.dumps({"file": file, "choices": choices, "items": items})
    for sign in "<>&":  # so that no text can end the script element
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What is the right answer?</title><style>{_STYLE}</style></head><body>"
        "<header><h1>What is the right answer?</h1><p>Choose or type the right answer of each"
        " item, also if no stage gave it; leave out what you do not know. Then save, put the"
        " file where the audit looks for it, and run the audit again."
        ' <span id="count"></span> <button id="save">Save</button></p></header><main></main>'
        f'<script type="application/json" id="data">{data}</script>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )
