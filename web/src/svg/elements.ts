// Elements of a document that is an SVG, in which HTML elements need their namespace too. Text is always text: nothing
// here takes markup. (`page/dom.ts` is for HTML documents.)
const svgSpace = "http://www.w3.org/2000/svg";
const htmlSpace = "http://www.w3.org/1999/xhtml";

export function svgElement<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number> = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgSpace, name);
  for (const key of Object.keys(attributes)) element.setAttribute(key, String(attributes[key]));
  element.append(...children);
  return element;
}

export function html<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElementNS(htmlSpace, name) as HTMLElementTagNameMap[K];
  if (className) element.setAttribute("class", className);
  element.append(...children);
  return element;
}
