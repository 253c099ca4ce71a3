// Short helpers for elements. Text is always text: nothing here takes markup.

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number | boolean> | string = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  const given = typeof attributes === "string" ? { class: attributes } : attributes;
  for (const key of Object.keys(given)) {
    const value = given[key];
    if (value === true) made.setAttribute(key, "");
    else if (value !== false) made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

// Writing causes a new layout even if the value is unchanged, and some of these are set in every step of a zoom.
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node: Element, name: string, value: string): void {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function setDisabled(buttons: HTMLButtonElement[], disabled: boolean): void {
  for (const one of buttons) if (one.disabled !== disabled) one.disabled = disabled;
}

const contents = new WeakMap<Element, string>();

// `key`: identifies the content; rebuilt only when it changes.
export function setContent(node: Element, key: string, make: () => (Node | string)[]): void {
  if (contents.get(node) === key) return;
  contents.set(node, key);
  node.replaceChildren(...make());
}

export function button(text: string, run: (event: MouseEvent) => void,
  attributes: Record<string, string | boolean> = {}): HTMLButtonElement
{
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", run);
  return made;
}

export interface Choice<T extends string> {
  element: HTMLElement;
  show(chosen: T): void;
}

// Buttons side by side, of which one is chosen.
export function choice<T extends string>(
  label: string,
  options: readonly (readonly [T, string])[],
  choose: (value: T) => void,
  meanings?: Record<T, string>,
): Choice<T> {
  const buttons = options.map(([value, text]) =>
    button(text, () => choose(value), { "data-value": value, title: meanings ? meanings[value] : "" })
  );
  const group = element("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
  return {
    element: group,
    show: (chosen) => buttons.forEach((one) => setAttribute(one, "aria-pressed", String(one.dataset.value === chosen))),
  };
}

// Rows of a name and values; an empty name continues the previous row.
export function factTable(rows: (readonly [string, ...string[]])[]): HTMLElement {
  const body = rows.map(([name, ...values]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", {}, value)))
  );
  return element("table", "facts", element("tbody", {}, ...body));
}
