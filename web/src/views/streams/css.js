// How the streams look. Every look has an underline of its own or a sign, besides its colour.
//
// Not here: the colours (../../theme.js), which look a run has (pieces.js).

export const css = `
.nbs .streams{
:focus-visible{outline-offset:-1px}
.legend .run{color:var(--nbs-fg)}
.legend .run::before{content:none}
.lanes{max-height:min(75vh,680px);overflow:auto;overscroll-behavior:auto;border:1px solid var(--nbs-line);border-radius:6px;padding:4px 6px}
.lanes:empty{display:none}
.lane{display:flex;align-items:stretch;content-visibility:auto;contain-intrinsic-size:auto 30px;border-radius:4px}
.lane:empty{min-height:30px}
.rails{display:flex;flex:none}
.rail{flex:none;width:20px;position:relative}
.rail.on::before{content:"";position:absolute;left:9px;top:0;bottom:0;border-left:1.5px solid var(--nbs-grey)}
.rail.arm::after{content:"";position:absolute;left:9px;right:-1px;top:0;height:14px;border:solid var(--nbs-grey);border-width:0 0 1.5px 1.5px;border-bottom-left-radius:6px}
.rail.back{background:no-repeat right 0 bottom 5px/11px 1.5px linear-gradient(var(--nbs-grey),var(--nbs-grey))}
.box{flex:1 1 auto;min-width:0;margin:2px 0 4px;padding:1px 6px 2px 8px;border-left:4px solid var(--s-c);cursor:pointer}
.lane{--s-c:var(--nbs-grey)}
[data-state=running]{--s-c:var(--nbs-blue)}:is([data-state=done],[data-state=joined]){--s-c:var(--nbs-green)}
[data-state=failed]{--s-c:var(--nbs-red)}[data-state=cancelled]{--s-c:var(--nbs-orange)}
[data-state=waiting] .box{border-left-style:dotted}:is([data-state=failed],[data-state=cancelled]) .box{border-left-style:dashed}[data-state=joined] .box{border-left-style:double}
.lane.marked .box{background:var(--nbs-soft);box-shadow:inset 0 0 0 1.5px var(--s-c);border-radius:0 4px 4px 0}
.head{display:flex;flex-wrap:wrap;align-items:baseline;gap:1px 8px;min-height:22px}
[aria-expanded=false] .head{flex-wrap:nowrap;white-space:nowrap}
.lanes button{min-height:0}
.toggle{border:0;background:none;padding:0;width:14px;flex:none;color:var(--nbs-faint)}
.sign{flex:none;color:var(--s-c);font-weight:700}
.label{overflow-wrap:anywhere;min-width:0;unicode-bidi:isolate}
[aria-expanded=false] .label{flex:none;max-width:40%;overflow:hidden;text-overflow:ellipsis}
.state,.figures,.hint{flex:none;max-width:100%;color:var(--nbs-faint);font-size:12px;font-variant-numeric:tabular-nums}
[aria-expanded=true] .figures{flex:0 1 auto}
.goes-on .state{font-style:italic}
.tail{flex:1 1 0;min-width:40px;overflow:hidden;direction:rtl;text-align:left;text-overflow:ellipsis;white-space:pre;font:12px/1.6 var(--nbs-mono)}
.head button:not(.toggle){font-size:12px;padding:0 7px;flex:none}
.cancel,.head .hint{margin-left:auto}
.share{display:flex;height:5px;max-width:420px;margin:2px 0 3px;border-radius:2px;overflow:hidden}
.share span{flex:0 0 0}.share .cached{background:repeating-linear-gradient(135deg,var(--nbs-blue) 0 3px,color-mix(in srgb,var(--nbs-blue) 35%,var(--nbs-bg)) 3px 6px)}
.share .prefilled{background:var(--nbs-grey)}.share .gen{background:var(--nbs-green)}
.text{max-height:260px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.75 var(--nbs-mono);cursor:auto;padding-bottom:2px}
.chip{margin-right:4px;unicode-bidi:isolate;border-radius:3px;cursor:pointer}
.chip.marked{outline:2px solid var(--nbs-fg);outline-offset:1px}
.chip.role{border:1px solid var(--nbs-line);padding:0 5px;font:600 11px/1.4 var(--nbs-font);color:var(--nbs-faint);background:var(--nbs-soft)}
.name{color:var(--nbs-faint);font-weight:700}.note{color:var(--nbs-faint)}
.gen>.name{color:var(--nbs-green)}.choice>.name{color:var(--nbs-purple)}.partial>.name{color:var(--nbs-orange)}
.run{--s-k:var(--nbs-grey);background:color-mix(in srgb,var(--s-k) var(--s-tint,0%),transparent);border-bottom:1px solid transparent;padding:1px 1px 0;box-decoration-break:clone;-webkit-box-decoration-break:clone}
.run.literal{border-bottom:1px dotted var(--s-k)}
.run.value{border-bottom:1px dotted var(--s-k);font-style:italic}
.run.cached{--s-k:var(--nbs-blue);border-bottom:2px dotted var(--s-k);background:repeating-linear-gradient(135deg,color-mix(in srgb,var(--s-k) 20%,transparent) 0 2px,transparent 2px 7px)}
.run.prefilled{--s-tint:12%;border-bottom:1px solid var(--s-k)}
.run.cached::before{content:"● ";color:var(--s-k);font-size:9px}.run.prefilled::before{content:"○ ";color:var(--nbs-faint);font-size:9px}
.run.gen{--s-k:var(--nbs-green);--s-tint:16%;border-bottom:2px solid var(--s-k)}
.run.constrained{--s-k:var(--nbs-green);--s-tint:16%;border-bottom:2px solid var(--s-k);border-top:1px dashed var(--s-k)}
.run.jumped{--s-k:var(--nbs-yellow);--s-tint:24%;text-decoration:underline wavy var(--s-k) 1.5px;text-underline-offset:3px}
.run.jumped::before{content:"»";color:var(--s-k);font-weight:700;display:inline-block}
.run.choice{--s-k:var(--nbs-purple);--s-tint:18%;border-bottom:3px double var(--s-k)}
.run.partial{--s-k:var(--nbs-orange);--s-tint:18%;border-bottom:2px dashed var(--s-k)}
.run.none{border-bottom:1px dotted var(--s-k)}
.run.l0{--s-k:var(--nbs-blue);--s-tint:6%}
.run.l1{--s-k:var(--nbs-sky);--s-tint:26%;border-bottom:2px dotted var(--s-k)}
.run.l2{--s-k:var(--nbs-yellow);--s-tint:30%;border-bottom:2px dashed var(--s-k)}
.run.l3{--s-k:var(--nbs-orange);--s-tint:42%;border-bottom:2px solid var(--s-k)}
.run.l4{--s-k:var(--nbs-red);--s-tint:48%;border-bottom:4px double var(--s-k);font-weight:700}
.chip.choice{margin-right:0}.chip.choice>.run{margin-right:4px}
.chip.live::after{content:"▌";color:var(--s-c)}
.fold,.more{font:11px/1.3 var(--nbs-font)!important;padding:0 6px!important;margin:0 4px!important;border-style:dashed!important}
.error{color:var(--nbs-red);white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;max-height:140px;overflow:auto;unicode-bidi:isolate}
.left{margin-top:4px}
@media (prefers-reduced-motion:no-preference){.chip.live::after{animation:nbs-streams-caret 1s steps(2) infinite}}
}
@keyframes nbs-streams-caret{50%{opacity:.15}}
`;
