// The cell of a notebook: an iframe of its own holds the report's page, so that no style goes in or out. Both talk by messages.

const PLAIN = "rgba(0, 0, 0, 0)";

/** An element, what it lies in, and so on, also out of shadow trees. */
function* around(node) {
  for (let one = node; one; one = one.parentElement ?? one.getRootNode().host) yield one;
}

/** Whether what lies behind an element is dark: the first background that is not clear, else as the system wants it. */
function isDark(node) {
  for (const one of around(node)) {
    const colour = getComputedStyle(one).backgroundColor;
    const [red, green, blue, alpha = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
    if (colour !== PLAIN && alpha > 0.5 && colour.startsWith("rgb")) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * Keep the frame where it is while the pointer is on it. It grows there with what its page says, and a notebook that is
 * scrolled would hold what lies below in its place: the map would move away under a box that is being drawn.
 */
function steady(frame) {
  const held = new Map();
  const letGo = () => {
    for (const [one, before] of held) one.style.overflowAnchor = before;
    held.clear();
  };
  frame.addEventListener("pointerleave", letGo);
  frame.addEventListener("pointerenter", () => {
    letGo();
    for (const one of around(frame)) {
      held.set(one, one.style.overflowAnchor);
      one.style.overflowAnchor = "none";
    }
  });
  return letGo;
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts"); // no origin: it cannot reach the notebook
  frame.title = "explanations with error bars";
  Object.assign(frame.style, { display: "block", width: "100%", height: "40rem", border: "0", colorScheme: "light" });
  let dark = null;

  const tell = (metfa, value) => frame.contentWindow?.postMessage({ metfa, value }, "*");

  function show() {
    frame.style.colorScheme = dark ? "dark" : "light"; // else the browser paints it white
    frame.srcdoc = model.get("_page").replace("<html ", `<html data-theme="${dark ? "dark" : "light"}" `);
  }

  function dress() {
    const now = isDark(el);
    if (now === dark || !el.isConnected) return;
    const first = dark === null;
    dark = now;
    if (first) return show();
    frame.style.colorScheme = dark ? "dark" : "light";
    tell("dark", dark);
  }

  function hear({ source, data }) {
    if (source !== frame.contentWindow || !data?.metfa) return;
    const { metfa, value } = data;
    if (metfa === "height") frame.style.height = `${value}px`;
    if (metfa === "ready") {
      tell("chosen", model.get("_chosen"));
      tell("sampling", model.get("_sampling"));
    }
    if (metfa === "chosen") {
      model.set("_chosen", value);
      model.save_changes();
    }
    if (metfa === "more") model.send({ kind: "more", ...value });
    if (metfa === "done") model.send({ kind: "done" });
  }

  const onChosen = () => tell("chosen", model.get("_chosen"));
  const onSampling = () => tell("sampling", model.get("_sampling"));
  model.on("change:_page", show);
  model.on("change:_chosen", onChosen);
  model.on("change:_sampling", onSampling);
  addEventListener("message", hear);
  const later = () => [0, 400, 1500].forEach((wait) => setTimeout(dress, wait)); // styles of a theme come after its name
  const observer = new MutationObserver(later);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  const letGo = steady(frame);
  el.append(frame);
  later();

  return () => {
    letGo();
    observer.disconnect();
    removeEventListener("message", hear);
    model.off("change:_page", show);
    model.off("change:_chosen", onChosen);
    model.off("change:_sampling", onSampling);
  };
}

export default { render };
