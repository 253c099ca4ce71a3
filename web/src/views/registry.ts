// The page's views, in the order of their buttons. The first main view is the initial one.
import { bottomUp } from "./bottom_up";
import { difference } from "./difference";
import { flameChart } from "./flame_chart";
import { flameGraph } from "./flame_graph";
import { functions } from "./functions";
import { requests } from "./requests";
import { sandwich } from "./sandwich";
import { source } from "./source";
import { stalls } from "./stalls";
import { timeline } from "./timeline";
import { traces } from "./traces";
import { View } from "./view";
import { waits } from "./waits";

export const views: View[] = [timeline, flameGraph, functions, flameChart, bottomUp, sandwich, source, waits,
  difference, stalls, requests, traces];
