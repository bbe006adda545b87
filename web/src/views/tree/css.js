// How the tree looks. Not here: the colours (../../theme.js), which class a node has (shapes.js).

import { css as sheet, MAX_HEIGHT } from "../../parts/sheet.js";

// What a saved picture needs too. Every colour has another cue: a sign, hatching, a dashed, double or thick line.
export const PICTURE = `
.node text{font:11.5px var(--nbs-mono);fill:var(--nbs-fg);white-space:pre;unicode-bidi:isolate;direction:ltr}
.node text.small{font-size:10px}
.node .sign{font-weight:700}.node .match{font-weight:700;text-decoration:underline;fill:var(--nbs-purple)}
.node .paper{fill:var(--nbs-bg)}.node .fill{stroke:currentColor;fill:currentColor;fill-opacity:.13;stroke-width:1}
.node .inner{fill:none;stroke:currentColor;stroke-width:1}.node .stripe{fill:currentColor}
.hatch{fill:none;stroke:var(--nbs-red);stroke-width:1.1;stroke-opacity:.75}
.node .edge{fill:none;stroke:currentColor;stroke-width:1.2}
.node{color:var(--nbs-grey)}.node.new{color:var(--nbs-green)}.node.hit{color:var(--nbs-blue)}.node.gone{color:var(--nbs-red)}
.node.new .fill,.node.hit .fill{fill-opacity:.2;stroke-width:1.4}.node.old .fill{fill-opacity:.07}
.node.gone .fill{fill-opacity:1;stroke-dasharray:5 3}.node.gone .edge{stroke-dasharray:5 3}
.node.gone text{paint-order:stroke;stroke:var(--nbs-bg);stroke-width:4px;stroke-linejoin:round}
.node.fold .fill{fill-opacity:0;stroke-dasharray:2 3}.node.fold .edge{stroke-dasharray:2 3}.node.fold text{font-style:italic}
.node.off:not(.found){opacity:.38}.node.on .fill,.node.on .edge{stroke-width:3}
.node.found .fill{stroke:var(--nbs-purple);stroke-width:2.5;stroke-dasharray:8 2}.node.here .fill{stroke-width:4;stroke-dasharray:none}
.node.named .fill,.node.selected .fill{stroke:var(--nbs-fg);stroke-width:3;stroke-dasharray:7 3}
.node.selected .fill{stroke-dasharray:none}
`;

export const css = `${sheet}
.nbs .tree{container-type:inline-size;
input[type=search]{width:160px}select{width:200px;text-overflow:ellipsis}
.stage{display:flex;gap:8px;flex-direction:column}
.sheet .node{cursor:pointer}.sheet .node:hover .fill{stroke-width:2.5}
.sheet:focus-visible .node.active .fill{stroke:var(--nbs-fg);stroke-width:3;stroke-dasharray:3 2}
.detail{flex:0 0 auto;border:1px solid var(--nbs-line);border-radius:6px;padding:8px 10px;max-height:380px;overflow:auto;overflow-wrap:anywhere}
@container (min-width:860px){.stage{flex-direction:row}.detail{flex:0 0 300px;max-height:${MAX_HEIGHT}px}}
.detail .head{display:flex;gap:6px;align-items:center}
dl{display:grid;grid-template-columns:auto 1fr;gap:2px 10px;margin:6px 0}dt{color:var(--nbs-faint)}dd{margin:0;min-width:0}
.detail ul{margin:0;padding:0;list-style:none;max-height:110px;overflow:auto}
.detail li{display:flex;gap:6px}.detail .how{white-space:nowrap;color:var(--nbs-faint)}
.detail pre{margin:6px 0;padding:6px 8px;max-height:150px;overflow:auto;background:var(--nbs-soft);color:inherit;border-radius:4px}
.chips{max-height:140px;overflow:auto}
.chip{border:1px solid var(--nbs-line);border-radius:3px;padding:0 2px;margin:0 2px 0 0}
.legend svg{vertical-align:-4px}&.graph .areas{display:none}
.tip .text{font:12px/1.4 var(--nbs-mono);margin-top:3px}
@media (prefers-reduced-motion:no-preference){.sheet .node.fresh{animation:nbs-tree-in .25s}}
${PICTURE}}
@keyframes nbs-tree-in{from{opacity:.2}}
`;
