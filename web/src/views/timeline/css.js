// How the timeline looks around its canvases, and the colours on them, those of Okabe and Ito.
//
// Not here: patterns (paint.js).

export const css = `
.nbs .timeline{--l-bg:var(--nbs-bg);--l-fg:var(--nbs-fg);--l-faint:var(--nbs-faint);--l-line:color-mix(in srgb,var(--nbs-fg) 14%,var(--nbs-bg));
--l-queued:var(--nbs-grey);--l-prefill:var(--nbs-blue);--l-decode:var(--nbs-green);--l-jump:var(--nbs-yellow);--l-preempted:var(--nbs-red);
--l-call:var(--nbs-green);--l-join-wait:var(--nbs-purple);--l-program:var(--nbs-grey);
--l-running:var(--nbs-green);--l-waiting:var(--nbs-grey);--l-locked:var(--nbs-orange);--l-evictable:var(--nbs-blue);
.swatch{display:inline-block;width:26px;height:12px;vertical-align:-2px;margin-right:4px;border-bottom:2px solid var(--l-c);background-color:color-mix(in srgb,var(--l-c) 14%,transparent)}
.plain{background-color:color-mix(in srgb,var(--l-c) 42%,transparent)}
.dots{background-image:radial-gradient(circle at 2.8px 2.8px,var(--l-c) .8px,transparent 1px);background-size:6px 6px}
.bars{background-image:repeating-linear-gradient(90deg,transparent 0 2.5px,var(--l-c) 2.5px 3.5px,transparent 3.5px 6px)}
:is(.slant,.cross){--l-s:transparent 0 1.5px,var(--l-c) 1.5px 2.5px,transparent 2.5px 4.24px;background-image:repeating-linear-gradient(135deg,var(--l-s))}
.cross{background-image:repeating-linear-gradient(135deg,var(--l-s)),repeating-linear-gradient(45deg,var(--l-s))}
.swatch.line{height:3px;border:0;vertical-align:3px;background:var(--l-c)}
.line.join-wait{background:repeating-linear-gradient(90deg,var(--l-c) 0 5px,transparent 5px 8px)}
.line.program{height:1.5px;background:repeating-linear-gradient(90deg,var(--l-c) 0 1.5px,transparent 1.5px 4.5px)}
.stage{position:relative;border:1px solid var(--l-line);border-radius:6px;overflow:hidden;cursor:crosshair;touch-action:pan-y;user-select:none}
.stage.drag{cursor:grabbing}.stage.over{cursor:pointer}
canvas{display:block}
.scroll{overflow-x:hidden;overflow-y:auto;max-height:360px;border:solid var(--l-line);border-width:1px 0}
.rows{position:sticky;top:0}
}
`;
