// Movement between drawn frames by arrow key. No DOM.
import { Box, Layout } from "../layout/flame";
import { Shape } from "../model/tree";
import { View } from "./fragment";

export type Arrow = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

export function boxOf(drawn: Layout, node: number): Box | undefined {
  return drawn.boxes.find((box) => box.node === node) || drawn.ancestors.find((box) => box.node === node);
}

// The frame next to the one under the cursor; undefined: none in that direction. From a cursor on no drawn frame: the
// zoomed frame.
export function neighbour(tree: Shape, drawn: Layout, view: View, zoom: number, cursor: number, arrow: Arrow):
  | number
  | undefined
{
  const box = cursor < 0 ? undefined : boxOf(drawn, cursor);
  if (!box) return zoom;
  if (arrow === "ArrowLeft" || arrow === "ArrowRight") {
    const row = drawn.boxes.filter((other) => other.row === box.row).sort((a, b) => a.x - b.x);
    return row[row.indexOf(box) + (arrow === "ArrowRight" ? 1 : -1)]?.node;
  }
  const outward = (arrow === "ArrowUp") === (view === "flame");
  if (!outward) {
    if (cursor === 0) return undefined;
    return boxOf(drawn, tree.parent[cursor]) ? tree.parent[cursor] : 0;
  }
  const children = drawn.boxes.concat(drawn.ancestors).filter((other) =>
    other.node !== 0 && tree.parent[other.node] === cursor
  );
  return children.reduce<Box | undefined>((best, other) => (best && best.width >= other.width ? best : other),
    undefined)?.node;
}
