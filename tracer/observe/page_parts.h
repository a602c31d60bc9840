// The fixed parts of a page (tracer/observe/page.cc): its style, for light and dark screens, and its script.
//
// The script only highlights: it finds rows, inputs and the bars under the curve by their data attributes, and sets
// the classes self, makes, uses and hot while the pointer is on an element, or after a click.
// Nothing is fetched; a page without the script is still a readable list.
#pragma once

#include <string_view>

namespace retrograd::inline v0::page_parts {

inline constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1c2430; --faint: #6b7686; --line: #e3e7ec;
  --op: #7f95b2; --unpack: #2e9e6b; --hook: #e0812b; --leaf: #9560c9;
  --makes: #d4ecdd; --uses: #dbe7fb; --self: #f3f0d7; }
@media (prefers-color-scheme: dark) { :root { --back: #14181e; --text: #dde3ea; --faint: #8591a1;
  --line: #2a313a; --makes: #1d4030; --uses: #1f3355; --self: #3b381f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
header { position: sticky; top: 0; z-index: 1; padding: 14px 24px 10px; background: var(--back);
  border-bottom: 1px solid var(--line); }
h1 { display: inline; margin: 0 14px 0 0; font-size: 18px; }
header small, footer { color: var(--faint); font-size: 13px; }
.legend { float: right; }
.legend i { display: inline-block; width: 9px; height: 9px; margin: 0 5px 0 14px; border-radius: 2px; }
figure { display: grid; grid-template-columns: auto 1fr; gap: 2px 8px; margin: 10px 0 0;
  color: var(--faint); font-size: 11px; }
figure svg { display: block; width: 100%; height: 110px; grid-row: span 2; border-bottom: 1px solid var(--line); }
figure span { text-align: right; }
figure svg + span { align-self: end; margin-bottom: 22px; }
figcaption { grid-column: 2; text-align: right; }
figcaption i { display: inline-block; width: 9px; height: 9px; margin: 0 4px 0 10px; border-radius: 2px; }
.area { fill: var(--held); background: var(--held); }
.before { --held: #c3cad4; } .saved { --held: #2e9e6b; } .recomputed { --held: #e0812b; }
.gradients { --held: #9560c9; } .others { --held: #7fa3d8; }
.curve { fill: none; stroke: var(--op); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
rect { fill: var(--op); } rect.unpack { fill: var(--unpack); } rect.hook { fill: var(--hook); }
rect.leaf { fill: var(--leaf); } rect.self { fill: var(--text); }
main { padding: 14px 24px; }
.plans rect { fill: #fff; }
.plans svg { display: block; width: 100%; max-width: 1000px; margin-bottom: 16px; }
code, td { font: 13px/1.6 ui-monospace, "DejaVu Sans Mono", monospace; }
.inputs { display: flex; flex-wrap: wrap; gap: 6px; margin-bottom: 16px; }
.inputs code { padding: 1px 8px; border: 1px solid var(--line); border-radius: 4px; }
table { width: 100%; border-collapse: collapse; }
td { padding: 1px 10px; white-space: nowrap; vertical-align: top; }
td:nth-child(3) { width: 100%; white-space: normal; }
tr.first td { border-top: 1px solid var(--line); }
td:first-child, .note, .time { color: var(--faint); }
td:first-child, .time { text-align: right; }
.bar { min-width: 120px;
  background: linear-gradient(var(--op), var(--op)) no-repeat left / var(--share) 50%; }
.kind { padding: 0 6px; border-radius: 3px; color: #fff; font-size: 11px; }
i.unpack, .kind.unpack { background: var(--unpack); } i.hook, .kind.hook { background: var(--hook); }
i.leaf, .kind.leaf { background: var(--leaf); } i.op { background: var(--op); }
b { font-weight: 600; cursor: pointer; border-radius: 3px; } b.hot { outline: 2px solid var(--hook); }
.self { background: var(--self); } .makes { background: var(--makes); } .uses { background: var(--uses); }
footer { padding: 0 24px 20px; }
)";

inline constexpr std::string_view kScript = R"(
const all = (s) => [...document.querySelectorAll(s)], words = (s) => (s || '').split(' ').filter(Boolean);
const makers = {}, users = {}, names = {}, places = {};
const add = (map, key, e) => (map[key] ||= []).push(e);
all('[data-m],[data-u]').forEach((e) => {
  words(e.dataset.m).forEach((v) => add(makers, v, e));
  words(e.dataset.u).forEach((v) => add(users, v, e));
});
all('[data-v]').forEach((e) => add(names, e.dataset.v, e));
all('[data-n]').forEach((e) => add(places, e.dataset.n, e));
let marked = [], kept = null;
const mark = (list, name) => (list || []).forEach((e) => {
  e.classList.add(name);
  marked.push([e, name]);
});
function show(e) {
  marked.forEach(([m, name]) => m.classList.remove(name));
  marked = [];
  if (!e) return;
  if (e.dataset.v) {
    mark(names[e.dataset.v], 'hot');
    mark(makers[e.dataset.v], 'makes');
    mark(users[e.dataset.v], 'uses');
    return;
  }
  mark(places[e.dataset.n], 'self');
  places[e.dataset.n].forEach((row) => {
    words(row.dataset.u).forEach((v) => mark(makers[v], 'makes'));
    words(row.dataset.m).forEach((v) => mark(users[v], 'uses'));
  });
}
const at = (event) => event.target.closest && event.target.closest('[data-v],[data-n]');
document.addEventListener('mouseover', (event) => kept || show(at(event)));
document.addEventListener('click', (event) => {
  const e = at(event);
  kept = e === kept ? null : e;
  show(e);
  if (!kept || e.matches('tr')) return;
  const goals = e.dataset.v ? makers[e.dataset.v] : places[e.dataset.n];
  goals[goals.length - 1].scrollIntoView({ block: 'center', behavior: 'smooth' });
});
)";

}  // namespace retrograd::page_parts
