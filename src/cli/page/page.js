// Draws the views of a page: `data` is what src/cli/page.cc writes. Positions come from there; this file only shows them.
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

function place() { scene.setAttribute("transform", `translate(${zoom.x} ${zoom.y}) scale(${zoom.k})`); }
function fit() {
  const w = drawing.clientWidth, h = drawing.clientHeight;
  const k = Math.min(1, (w - 24) / Math.max(view.width, 1), Math.max((h - 24) / Math.max(view.height, 1), 0.35));
  zoom = { k, x: (w - view.width * k) / 2, y: 12 };
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
  else if (e.key === "0") fit();
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
  const svg = make("svg", { role: "img", "aria-label": view.name });
  scene = svg.appendChild(make("g", {}));
  for (const e of view.edges) {
    const line = make("path", { class: "edge", d: path_of(e.points) });
    lines.push(line);
    scene.append(line);
  }
  for (const n of view.nodes) {
    const g = make("g", { class: `node ${n.kind}`, transform: `translate(${n.x} ${n.y})`, "data-label": n.label });
    g.append(make("rect", { width: n.w, height: n.h }));
    g.append(make("text", { x: n.w / 2, y: n.type ? 16 : n.h / 2 + 4 }, n.short));
    if (n.type) g.append(make("text", { class: "type", x: n.w / 2, y: 31 }, n.type));
    g.append(make("title", {}, n.label));
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
  drawing.replaceChildren(svg);
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
function block(title, text) {
  if (!text) return;
  section(title);
  element("pre", text, details);
}
function describe_view() {
  details.replaceChildren();
  element("h2", view.name, details);
  if (view.type) block("type", view.type);
  element("p", `${counted(view.nodes.length, "node")}, ${counted(view.edges.length, "edge")}. Click on a node for its details; double-click on a dashed group opens it. Wheel: zoom; drag: move; 0: all; /: filter; Esc: out of a group.`, details);
  const functions = data.functions.filter(f => f.stage === view.stage && f.view !== view.index);
  list("functions", functions, f => f.name, f => show(f.view));
  if (data.facts.length) {
    section("program");
    const t = element("table", undefined, details);
    for (const [a, b] of data.facts) { const r = element("tr", undefined, t); element("td", a, r); element("td", b, r); }
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
  block("type", n.full_type);
  if (n.place) block("source", n.place);
  list("takes", view.edges.filter(e => e.to === id).map(e => by(e.from)), m => m.label, m => choose(m.id));
  list("goes to", view.edges.filter(e => e.from === id).map(e => by(e.to)), m => m.label, m => choose(m.id));
  list(view.stage === 0 ? "computed by" : "computes", n.other || [], o => o.label, o => go(o.stage, o.id));
  block("attributes", n.attributes);
  if (n.kernel !== undefined) {
    const k = data.kernels[n.kernel];
    section(`kernel ${k.name}`);
    element("p", k.schedule, details);
    if (k.declined.length) {
      section("rules that declined");
      const ul = element("ul", undefined, details);
      for (const line of k.declined) element("li", line, ul);
    }
    block("computes", k.text);
    block("scheduled loops", k.loops);
  }
}

// ---- The filter

function apply_filter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const n of view.nodes) {
    const text = `${n.label} ${n.full_type || ""} ${n.place || ""}`.toLowerCase();
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
window.addEventListener("resize", fit);
show(data.stages[data.stages.length - 1].view);
