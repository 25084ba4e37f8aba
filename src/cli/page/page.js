// Draws the views of a page: `data` is what src/cli/html/page.cc writes. Positions come from there; this file only shows them.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const drawing = document.getElementById("drawing");
const details = document.getElementById("details");
const filter = document.getElementById("filter");
let view = null, scene = null, shapes = new Map(), lines = [], chosen = null;
let zoom = { x: 0, y: 0, k: 1 };

function make(name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  return e;
}
function element(name, text, parent) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

// ---- Moving about

// A transform of the whole element: texts within are not laid out again.
function place() { scene.style.transform = `translate(${zoom.x}px, ${zoom.y}px) scale(${zoom.k})`; }
// A view opens at a size that can be read, from its top; `all` shows it to its end.
function fit(all) {
  const w = drawing.clientWidth, h = drawing.clientHeight;
  const whole = Math.max((h - 24) / Math.max(view.height, 1), all ? 0 : view.stage > 2 ? 1 : 0.6);
  const wide = Math.max((w - 24) / Math.max(view.width, 1), all ? 0 : 0.6);
  const k = Math.min(1, wide, whole);
  zoom = { k, x: view.stage > 2 ? Math.max((w - view.width * k) / 2, 12) : (w - view.width * k) / 2, y: 12 };
  place();
}
function zoom_at(factor, x, y) {
  const k = Math.min(4, Math.max(0.02, zoom.k * factor));
  zoom.x = x - (x - zoom.x) * k / zoom.k;
  zoom.y = y - (y - zoom.y) * k / zoom.k;
  zoom.k = k;
  place();
}
drawing.addEventListener("wheel", e => {
  e.preventDefault();
  const r = drawing.getBoundingClientRect();
  zoom_at(Math.exp(-e.deltaY / 400), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
let drag = null;
drawing.addEventListener("pointerdown", e => { drag = { x: e.clientX - zoom.x, y: e.clientY - zoom.y, from: [e.clientX, e.clientY] }; });
window.addEventListener("pointermove", e => {
  if (!drag) return;
  zoom.x = e.clientX - drag.x;
  zoom.y = e.clientY - drag.y;
  place();
});
window.addEventListener("pointerup", () => { drag = null; });
window.addEventListener("keydown", e => {
  if (e.target === filter) { if (e.key === "Escape") { filter.value = ""; apply_filter(); filter.blur(); } return; }
  const w = drawing.clientWidth / 2, h = drawing.clientHeight / 2;
  if (e.key === "+") zoom_at(1.25, w, h);
  else if (e.key === "-") zoom_at(0.8, w, h);
  else if (e.key === "0") fit(true);
  else if (e.key === "/") { e.preventDefault(); filter.focus(); }
  else if (e.key === "Escape" && view.parent >= 0) show(view.parent);
});

// ---- The drawing

function path_of(points) {
  let d = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x, y] = points[i];
    if (x === x0) { d += `V${y}`; continue; }
    const m = (y0 + y) / 2;
    d += `C${x0} ${m} ${x} ${m} ${x} ${y}`;
  }
  return d;
}
function show(index, node) {
  view = data.views[index];
  view.index = index;
  shapes = new Map(); lines = []; chosen = null;
  scene = make("svg", { role: "img", "aria-label": view.name, width: view.width, height: view.height });
  for (const e of view.edges) {
    const line = make("path", { class: "edge", d: path_of(e.points) });
    lines.push(line);
    scene.append(line);
  }
  for (const l of view.lines || []) {
    const points = l.points.map(p => p.join(" ")).join("L");
    scene.append(make("path", { class: l.kind, d: `M${l.points[0][0]} ${l.base}L${points}V${l.base}Z` }));
  }
  for (const m of view.marks || [])
    scene.append(make("text", { class: "mark", x: m.x, y: m.y, "text-anchor": m.anchor }, m.text));
  for (const n of view.nodes) {
    const g = make("g", { class: `node ${n.kind}`, transform: `translate(${n.x} ${n.y})`, "data-label": n.label });
    const box = g.appendChild(make("rect", { width: n.w, height: n.h }));
    const share = share_of(n);
    if (share > 0) box.style.fill = `color-mix(in srgb, var(--hot) ${Math.round(75 * share / greatest_share)}%, var(--box))`;
    g.append(make("text", { x: n.w / 2, y: n.type ? 16 : n.h / 2 + 4 }, n.short));
    if (n.type) g.append(make("text", { class: "type", x: n.w / 2, y: 31 }, n.type));
    if (n.bars) draw_bars(g, n);
    g.append(make("title", {}, share > 0 ? `${n.label}: ${percent(share)} of the time` : n.label));
    g.addEventListener("click", e => {
      if (drag && Math.hypot(e.clientX - drag.from[0], e.clientY - drag.from[1]) > 4) return;
      choose(n.id);
    });
    g.addEventListener("dblclick", () => {
      const called = function_of(n);
      if (n.view !== undefined) show(n.view);
      else if (called) show(called.view);
    });
    shapes.set(n.id, g);
    scene.append(g);
  }
  drawing.replaceChildren(scene);
  for (const b of document.querySelectorAll("#views button"))
    b.setAttribute("aria-pressed", String(Number(b.dataset.stage) === view.stage));
  const path = document.getElementById("path");
  path.replaceChildren();
  for (let v = index, first = true; v >= 0; v = data.views[v].parent, first = false) {
    const a = element(first ? "span" : "a", data.views[v].name);
    if (!first) { a.addEventListener("click", () => show(v)); path.prepend(" › "); }
    path.prepend(a);
  }
  fit();
  apply_filter();
  if (node !== undefined && shapes.has(node)) { choose(node); centre(node); } else describe_view();
}
// A histogram at the foot of a card, with the least and the greatest number.
function draw_bars(g, n) {
  const left = 10, foot = n.h - 16, width = (n.w - 2 * left) / n.bars.length;
  n.bars.forEach((height, i) => g.append(make("rect", { class: "bar", x: left + i * width, width: Math.max(width - 1, 1),
    y: foot - 0.36 * height, height: 0.36 * height })));
  g.append(make("text", { class: "end", x: left, y: n.h - 4, "text-anchor": "start" }, n.ends[0]));
  g.append(make("text", { class: "end", x: n.w - left, y: n.h - 4, "text-anchor": "end" }, n.ends[1]));
}
// The share of the time of a run that a kernel takes, and the kernels of a node of the model take.
const kernel_of = new Map();
for (const v of data.views) for (const n of v.nodes) if (n.kernel !== undefined && v.stage === 1) kernel_of.set(n.id, n.kernel);
function profile_of(kernel) { return (data.kernels[kernel] || {}).profile; }
function share_of(n) {
  if (view.stage > 1 || n.kind === "port") return 0;
  const kernels = n.kernel !== undefined ? [n.kernel] : (n.other || []).map(o => kernel_of.get(o.id));
  return Math.max(0, ...kernels.map(k => (profile_of(k) || { share: 0 }).share));
}
const greatest_share = Math.max(1e-9, ...data.kernels.map(k => k.profile ? k.profile.share : 0));
function percent(share) { return `${(100 * share).toFixed(1)} %`; }
function time_text(seconds) {
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]].find(u => seconds >= u[1]) || ["ns", 1e-9];
  return `${(seconds / size).toPrecision(3)} ${unit}`;
}
// The function that a node calls.
function function_of(n) { return data.functions.find(f => f.stage === view.stage && f.name === n.label); }
function centre(id) {
  const n = view.nodes.find(m => m.id === id);
  zoom.k = Math.max(zoom.k, 0.8);
  zoom.x = drawing.clientWidth / 2 - (n.x + n.w / 2) * zoom.k;
  zoom.y = drawing.clientHeight / 2 - (n.y + n.h / 2) * zoom.k;
  place();
}
// The view in which a node of a stage stands.
function go(stage, id) {
  for (let i = 0; i < data.views.length; i++) {
    const v = data.views[i];
    if (v.stage === stage && v.nodes.some(n => n.id === id && n.kind !== "port")) { show(i, id); return; }
  }
}

// ---- The details

function section(title) { return element("h3", title, details); }
function link(parent, text, action) {
  const a = element("a", text, parent);
  a.addEventListener("click", action);
  return a;
}
function list(title, items, text, action) {
  if (!items.length) return;
  section(title);
  const ul = element("ul", undefined, details);
  for (const item of items) link(element("li", undefined, ul), text(item), () => action(item));
}
function counted(n, noun) { return `${n} ${noun}${n === 1 ? "" : "s"}`; }
function table(rows) {
  const t = element("table", undefined, details);
  for (const [a, b] of rows) { const r = element("tr", undefined, t); element("td", a, r); element("td", b, r); }
}
// Two texts of a program: lines that the other one does not have are marked. Variables are numbered anew by every print.
function compared(name, before, after) {
  const plain = line => line.replace(/%\d+/g, "%").trim();
  const both = [before, after].map(text => text.split("\n"));
  const known = both.map(lines => new Set(lines.map(plain)));
  both.forEach((lines, i) => {
    section(`${name}, ${i === 0 ? "before" : "after"}`);
    const pre = element("pre", undefined, details);
    for (const line of lines) element(known[1 - i].has(plain(line)) ? "span" : i === 0 ? "del" : "ins", line + "\n", pre);
  });
}
// The kernel under the roofline of the machine: logarithmic in both directions.
function roofline(p) {
  const levels = Object.entries(data.limits.read_gbytes_per_second), peak = data.limits.gflops;
  const rates = levels.map(l => l[1]), at = p.gflops / p.gbytes_per_second;
  const x0 = Math.min(at, peak / Math.max(...rates)) / 4, x1 = Math.max(at, peak / Math.min(...rates)) * 4;
  const y1 = Math.max(peak, p.gflops) * 2, y0 = Math.min(p.gflops, x0 * Math.min(...rates)) / 2;
  const w = 340, h = 190, x = v => 8 + (w - 16) * Math.log(v / x0) / Math.log(x1 / x0);
  const y = v => h - 24 - (h - 40) * Math.log(v / y0) / Math.log(y1 / y0);
  const svg = make("svg", { class: "roofline", viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "roofline" });
  for (const [name, rate] of levels) {
    const bend = peak / rate;
    svg.append(make("path", { class: "edge", d: `M${x(x0)} ${y(x0 * rate)}L${x(bend)} ${y(peak)}L${x(x1)} ${y(peak)}` }));
    svg.append(make("text", { x: x(x0) + 4, y: y(x0 * rate) - 4 }, name));
  }
  svg.append(make("text", { x: w - 8, y: y(peak) + 14, "text-anchor": "end" }, `${peak.toFixed(0)} GFLOP/s`));
  svg.append(make("circle", { class: "dot", cx: x(at), cy: y(p.gflops), r: 5 }));
  svg.append(make("text", { x: 8, y: h - 6 }, `${at.toPrecision(3)} operations per byte, ${p.gflops.toFixed(1)} GFLOP/s`));
  details.append(svg);
}
function block(title, text) {
  if (!text) return;
  section(title);
  element("pre", text, details).className = title;
}
function describe_view() {
  details.replaceChildren();
  element("h2", view.name, details);
  if (view.type) block("type", view.type);
  const what = { 2: counted(view.nodes.length, "value"), 3: counted(view.nodes.length, "card"), 4: counted(view.nodes.length, "change") };
  element("p", `${what[view.stage] || `${counted(view.nodes.length, "node")}, ${counted(view.edges.length, "edge")}`}. Click on a node for its details; double-click on a dashed group opens it. Wheel: zoom; drag: move; 0: all; /: filter; Esc: out of a group.`, details);
  const functions = data.functions.filter(f => f.stage === view.stage && f.view !== view.index);
  list("functions", functions, f => f.name, f => show(f.view));
  if (data.facts.length) {
    section("program");
    table(data.facts);
  }
}
function choose(id) {
  chosen = id;
  for (const [key, g] of shapes) g.classList.toggle("chosen", key === id);
  view.edges.forEach((e, i) => lines[i].classList.toggle("chosen", e.from === id || e.to === id));
  const n = view.nodes.find(m => m.id === id);
  const by = key => view.nodes.find(m => m.id === key);
  details.replaceChildren();
  element("h2", n.label, details);
  if (n.view !== undefined) link(element("p", undefined, details), `open: ${n.count} nodes`, () => show(n.view));
  const called = function_of(n);
  if (called) link(element("p", undefined, details), `open ${called.name}`, () => show(called.view));
  if (n.facts) table(n.facts);
  block("type", n.full_type);
  if (n.place) block("source", n.place);
  if (view.stage < 2) list("takes", view.edges.filter(e => e.to === id).map(e => by(e.from)), m => m.label, m => choose(m.id));
  if (view.stage < 2) list("goes to", view.edges.filter(e => e.from === id).map(e => by(e.to)), m => m.label, m => choose(m.id));
  list(view.stage === 0 ? "computed by" : view.stage === 2 ? "written by" : "computes", n.other || [], o => o.label, o => go(o.stage, o.id));
  block("attributes", n.attributes);
  for (const t of n.texts || []) if (t.before || t.after) compared(t.name, t.before, t.after);
  if (n.kernel !== undefined) {
    const k = data.kernels[n.kernel];
    section(`kernel ${k.name}`);
    if (k.schedule) element("p", k.schedule, details);
    if (k.profile) {
      const p = k.profile;
      table([["time of a call", time_text(p.seconds)], ["calls in a run", p.calls], ["of the time", percent(p.share)],
        ...(p.limit ? [["limited by", `${p.limit}; reaches ${percent(p.of_limit)}`]] : [])]);
      if (data.limits && p.gflops > 0 && p.gbytes_per_second > 0) roofline(p);
    }
    if (k.declined.length) {
      section("rules that declined");
      const ul = element("ul", undefined, details);
      for (const line of k.declined) element("li", line, ul);
    }
    block("computes", k.text);
    block("scheduled loops", k.loops);
    block("assembly", k.assembly);
  }
}

// ---- The filter

function apply_filter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const n of view.nodes) {
    const text = `${n.label} ${n.full_type || ""} ${n.place || ""} ${(n.facts || []).join(" ")}`.toLowerCase();
    shapes.get(n.id).classList.toggle("other", !words.every(w => text.includes(w)));
  }
}
filter.addEventListener("input", apply_filter);
filter.addEventListener("keydown", e => {
  if (e.key !== "Enter") return;
  const found = view.nodes.filter(n => !shapes.get(n.id).classList.contains("other"));
  if (!found.length) return;
  const next = found[(found.findIndex(n => n.id === chosen) + 1) % found.length];
  choose(next.id);
  centre(next.id);
});

const buttons = document.getElementById("views");
for (const stage of data.stages) {
  const b = element("button", stage.name, buttons);
  b.dataset.stage = stage.stage;
  b.addEventListener("click", () => show(stage.view));
}
window.addEventListener("resize", () => fit());
show(data.stages.filter(s => s.stage < 2).pop().view);
