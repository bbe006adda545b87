// How the tree looks. Colours are those of Okabe and Ito, mixed with the colour of the text so that they are darker on
// light ground and lighter on dark. Not here: which class a node has (shapes.js).

// What a saved picture needs too. Every colour has another cue: a sign, hatching, a dashed, double or thick line.
export const PICTURE = `
.node text{font:11.5px var(--t-mono);fill:var(--t-fg);white-space:pre;unicode-bidi:isolate;direction:ltr}
.node text.small{font-size:10px}
.node .sign{font-weight:700}.node .match{font-weight:700;text-decoration:underline;fill:var(--t-found)}
.node .paper{fill:var(--t-bg)}.node .fill{stroke:currentColor;fill:currentColor;fill-opacity:.13;stroke-width:1}
.node .inner{fill:none;stroke:currentColor;stroke-width:1}.node .stripe{fill:currentColor}
.hatch{fill:none;stroke:var(--t-gone);stroke-width:1.1;stroke-opacity:.75}
.node .edge{fill:none;stroke:currentColor;stroke-width:1.2}
.node{color:var(--t-old)}.node.new{color:var(--t-new)}.node.hit{color:var(--t-hit)}.node.gone{color:var(--t-gone)}
.node.new .fill,.node.hit .fill{fill-opacity:.2;stroke-width:1.4}.node.old .fill{fill-opacity:.07}
.node.gone .fill{fill-opacity:1;stroke-dasharray:5 3}.node.gone .edge{stroke-dasharray:5 3}
.node.gone text{paint-order:stroke;stroke:var(--t-bg);stroke-width:4px;stroke-linejoin:round}
.node.fold .fill{fill-opacity:0;stroke-dasharray:2 3}.node.fold .edge{stroke-dasharray:2 3}.node.fold text{font-style:italic}
.node.off:not(.found){opacity:.38}.node.on .fill{stroke-width:3}.node.on .edge{stroke-width:3}
.node.found .fill{stroke:var(--t-found);stroke-width:2.5;stroke-dasharray:8 2}.node.here .fill{stroke-width:4;stroke-dasharray:none}
.node.selected .fill{stroke:var(--t-fg);stroke-width:3;stroke-dasharray:none}
`;

export const css = `
.nbs .tree{--t-bg:var(--nbs-bg,var(--jp-layout-color1,var(--vscode-editor-background,#fff)));
--t-fg:var(--nbs-fg,var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1a1a1a)));
--t-mono:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace)),Menlo,Consolas,"DejaVu Sans Mono",monospace;
--t-new:color-mix(in srgb,#009e73 82%,var(--t-fg));--t-hit:color-mix(in srgb,#0072b2 78%,var(--t-fg));
--t-gone:color-mix(in srgb,#d55e00 85%,var(--t-fg));--t-found:color-mix(in srgb,#cc79a7 70%,var(--t-fg));
--t-old:color-mix(in srgb,var(--t-fg) 55%,var(--t-bg));--t-line:color-mix(in srgb,var(--t-fg) 22%,var(--t-bg));
--t-soft:color-mix(in srgb,var(--t-fg) 6%,var(--t-bg));--t-faint:color-mix(in srgb,var(--t-fg) 72%,var(--t-bg));
position:relative;container-type:inline-size;background:var(--t-bg);color:var(--t-fg);font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif)}
.nbs .tree *{box-sizing:border-box}.nbs .tree [hidden]{display:none!important}
.nbs .tree .bar,.nbs .tree .time,.nbs .tree .legend{display:flex;flex-wrap:wrap;align-items:center;gap:4px 10px;padding:4px 0}
.nbs .tree .tools{display:inline-flex;flex-wrap:wrap;align-items:center;gap:4px}
.nbs .tree button,.nbs .tree select,.nbs .tree input[type=search]{font:inherit;line-height:1.3;color:inherit;background:var(--t-soft);border:1px solid var(--t-line);border-radius:4px;padding:2px 8px;min-height:26px;margin:0}
.nbs .tree button{cursor:pointer;white-space:nowrap}.nbs .tree button:hover{border-color:var(--t-fg)}
.nbs .tree button:disabled{opacity:.45;cursor:default;border-color:var(--t-line)}
.nbs .tree button[aria-pressed=true]{border-color:var(--t-fg);box-shadow:inset 0 -3px var(--t-fg)}
.nbs .tree button.link{background:none;border:0;padding:0 1px;min-height:0;text-decoration:underline;white-space:normal;text-align:left;overflow-wrap:anywhere}
.nbs .tree input[type=search]{width:160px}.nbs .tree select{max-width:220px;text-overflow:ellipsis}
.nbs .tree :focus-visible{outline:2px solid var(--t-fg);outline-offset:1px}
.nbs .tree .count,.nbs .tree .word,.nbs .tree .legend{color:var(--t-faint);font-size:12px;font-variant-numeric:tabular-nums}
.nbs .tree .stage{display:flex;gap:8px;align-items:stretch;flex-direction:column}
.nbs .tree .sheet{flex:1 1 auto;min-width:0;overflow:auto;max-height:440px;border:1px solid var(--t-line);border-radius:6px;scrollbar-gutter:stable;position:relative;background:var(--t-bg)}
.nbs .tree .sheet.drag{cursor:grabbing;user-select:none}
.nbs .tree .sheet:focus-visible{outline:2px solid var(--t-fg);outline-offset:1px}
.nbs .tree .sheet svg{display:block}.nbs .tree .sheet .node{cursor:pointer}
.nbs .tree .sheet .node:hover .fill{stroke-width:2.5}
.nbs .tree .sheet:focus-visible .node.active .fill{stroke:var(--t-fg);stroke-width:3;stroke-dasharray:3 2}
.nbs .tree .empty{padding:18px;color:var(--t-faint)}
.nbs .tree .detail{flex:0 0 auto;border:1px solid var(--t-line);border-radius:6px;padding:8px 10px;max-height:380px;overflow:auto;overflow-wrap:anywhere;background:var(--t-bg)}
@container (min-width:860px){.nbs .tree .stage{flex-direction:row}.nbs .tree .detail{flex:0 0 300px;max-height:440px}}
.nbs .tree .detail .head{display:flex;gap:6px;align-items:center}.nbs .tree .grow{flex:1}
.nbs .tree dl{display:grid;grid-template-columns:auto 1fr;gap:2px 10px;margin:6px 0}.nbs .tree dt{color:var(--t-faint)}.nbs .tree dd{margin:0;min-width:0}
.nbs .tree .detail ul{margin:0;padding:0;list-style:none;max-height:110px;overflow:auto}
.nbs .tree .detail li{display:flex;gap:6px}.nbs .tree .detail .how{white-space:nowrap;color:var(--t-faint)}
.nbs .tree .detail pre{margin:6px 0;padding:6px 8px;max-height:150px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.45 var(--t-mono);background:var(--t-soft);color:inherit;border-radius:4px;unicode-bidi:isolate;direction:ltr}
.nbs .tree .chips{max-height:140px;overflow:auto;font:12px/1.7 var(--t-mono);unicode-bidi:isolate;direction:ltr}
.nbs .tree .chip{border:1px solid var(--t-line);border-radius:3px;padding:0 2px;margin:0 2px 0 0;white-space:pre-wrap}
.nbs .tree .time{border-top:1px solid var(--t-line);margin-top:6px}
.nbs .tree .time input[type=range]{flex:1 1 180px;min-width:120px;accent-color:var(--t-fg);margin:0}
.nbs .tree .sentence{flex:1 0 100%;min-height:1.45em;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-size:12.5px}
.nbs .tree .time.past .sentence{font-weight:600}
.nbs .tree .legend svg{vertical-align:-4px}.nbs .tree.graph .areas{display:none}.nbs .tree .legend span.key{white-space:nowrap}
.nbs .tree .crumbs{display:flex;flex-wrap:wrap;gap:4px;align-items:center;padding:2px 0}
.nbs .tree .tip{position:absolute;z-index:5;max-width:min(440px,92%);max-height:220px;overflow:hidden;padding:6px 9px;background:var(--t-bg);color:var(--t-fg);border:1px solid var(--t-fg);border-radius:5px;box-shadow:0 2px 8px #0005;pointer-events:none;font-size:12px}
.nbs .tree .tip .text{white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.4 var(--t-mono);margin-top:3px;unicode-bidi:isolate;direction:ltr}
.nbs .tree .hint{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
@media (prefers-reduced-motion:no-preference){.nbs .tree .sheet .node.fresh{animation:nbs-tree-in .25s}@keyframes nbs-tree-in{from{opacity:.2}}}
${PICTURE.trim().split("\n").map((line) => line.replace(/(^|\})(\.node|\.hatch)/g, "$1.nbs .tree $2")).join("\n")}
`;
