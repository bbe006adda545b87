// How the timeline looks around its canvases, and the colours on them, those of Okabe and Ito.
//
// Not here: patterns (paint.js).

export const css = `
.nbs .timeline{--l-bg:var(--nbs-bg,var(--jp-layout-color1,var(--vscode-editor-background,#fff)));
--l-fg:var(--nbs-fg,var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1a1a1a)));
--l-line:color-mix(in srgb,var(--l-fg) 14%,var(--l-bg));--l-faint:color-mix(in srgb,var(--l-fg) 72%,var(--l-bg));
--l-queued:color-mix(in srgb,var(--l-fg) 55%,var(--l-bg));--l-prefill:color-mix(in srgb,#0072b2 75%,var(--l-fg));
--l-decode:color-mix(in srgb,#009e73 85%,var(--l-fg));--l-jump:color-mix(in srgb,#c9a400 85%,var(--l-fg));
--l-preempted:color-mix(in srgb,#d55e00 85%,var(--l-fg));--l-call:var(--l-decode);
--l-join-wait:color-mix(in srgb,#cc79a7 80%,var(--l-fg));--l-program:var(--l-queued);
--l-running:var(--l-decode);--l-waiting:var(--l-queued);--l-locked:color-mix(in srgb,#e69f00 80%,var(--l-fg));--l-evictable:var(--l-prefill);
position:relative;background:var(--l-bg);color:var(--l-fg);font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif)}
.nbs .timeline *{box-sizing:border-box}.nbs .timeline [hidden]{display:none!important}
.nbs .timeline .bar,.nbs .timeline .legend{display:flex;flex-wrap:wrap;align-items:center;gap:4px 12px;padding:4px 0}
.nbs .timeline .tools{display:inline-flex;flex-wrap:wrap;gap:4px}
.nbs .timeline button{font:inherit;line-height:1.3;color:inherit;background:color-mix(in srgb,var(--l-fg) 6%,var(--l-bg));border:1px solid var(--l-line);border-radius:4px;padding:2px 8px;min-height:26px;margin:0;cursor:pointer;white-space:nowrap}
.nbs .timeline button:hover{border-color:var(--l-fg)}.nbs .timeline button:disabled{opacity:.5;cursor:default;border-color:var(--l-line)}
.nbs .timeline button[aria-pressed=true]{border-color:var(--l-fg);box-shadow:inset 0 -3px var(--l-fg)}
.nbs .timeline .count,.nbs .timeline .legend{color:var(--l-faint);font-size:12px;font-variant-numeric:tabular-nums}
.nbs .timeline .legend .key{white-space:nowrap}.nbs .timeline .legend canvas{vertical-align:-2px;margin-right:4px}
.nbs .timeline .stage{position:relative;border:1px solid var(--l-line);border-radius:6px;overflow:hidden;cursor:crosshair;touch-action:pan-y;user-select:none}
.nbs .timeline .stage.drag{cursor:grabbing}.nbs .timeline .stage.over{cursor:pointer}
.nbs .timeline .stage:focus-visible,.nbs .timeline button:focus-visible{outline:2px solid var(--l-fg);outline-offset:1px}
.nbs .timeline canvas{display:block}.nbs .timeline .legend canvas{display:inline-block}
.nbs .timeline .scroll{overflow-x:hidden;overflow-y:auto;max-height:360px;border:solid var(--l-line);border-width:1px 0}
.nbs .timeline .rows{position:sticky;top:0}
.nbs .timeline .empty{padding:14px;color:var(--l-faint)}
.nbs .timeline .tip{position:absolute;z-index:5;max-width:min(420px,92%);padding:6px 9px;background:var(--l-bg);color:var(--l-fg);border:1px solid var(--l-fg);border-radius:5px;box-shadow:0 2px 8px #0005;pointer-events:none;font-size:12px;overflow-wrap:anywhere}
.nbs .timeline .tip .text{white-space:pre-wrap;font-variant-numeric:tabular-nums}
.nbs .timeline .option{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
`;
