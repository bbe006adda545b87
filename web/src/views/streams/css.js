// How the streams look. Colours are those of Okabe and Ito, mixed with the colour of the text so that they are darker on
// light ground and lighter on dark. Every look has an underline of its own or a sign besides.
//
// Not here: which look a run has (pieces.js).

export const css = `
.nbs .streams{--s-bg:var(--nbs-bg,var(--jp-layout-color1,var(--vscode-editor-background,#fff)));
--s-fg:var(--nbs-fg,var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1a1a1a)));
--s-mono:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace)),Menlo,Consolas,"DejaVu Sans Mono",monospace;
--s-green:color-mix(in srgb,#009e73 82%,var(--s-fg));--s-blue:color-mix(in srgb,#0072b2 72%,var(--s-fg));
--s-sky:color-mix(in srgb,#56b4e9 82%,var(--s-fg));--s-yellow:color-mix(in srgb,#c9a400 82%,var(--s-fg));
--s-red:color-mix(in srgb,#d55e00 85%,var(--s-fg));--s-purple:color-mix(in srgb,#cc79a7 80%,var(--s-fg));
--s-orange:color-mix(in srgb,#e69f00 82%,var(--s-fg));--s-grey:color-mix(in srgb,var(--s-fg) 50%,var(--s-bg));
--s-line:color-mix(in srgb,var(--s-fg) 22%,var(--s-bg));--s-soft:color-mix(in srgb,var(--s-fg) 6%,var(--s-bg));
--s-faint:color-mix(in srgb,var(--s-fg) 72%,var(--s-bg));
position:relative;background:var(--s-bg);color:var(--s-fg);font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif)}
.nbs .streams *{box-sizing:border-box}.nbs .streams [hidden]{display:none!important}
.nbs .streams button{font:inherit;line-height:1.3;color:inherit;background:var(--s-soft);border:1px solid var(--s-line);border-radius:4px;padding:2px 8px;margin:0;cursor:pointer;white-space:nowrap}
.nbs .streams button:hover{border-color:var(--s-fg)}.nbs .streams button:disabled{opacity:.5;cursor:default;border-color:var(--s-line)}
.nbs .streams button[aria-pressed=true]{border-color:var(--s-fg);box-shadow:inset 0 -3px var(--s-fg)}
.nbs .streams :focus-visible{outline:2px solid var(--s-fg);outline-offset:-1px}
.nbs .streams .bar,.nbs .streams .legend{display:flex;flex-wrap:wrap;align-items:center;gap:4px 12px;padding:4px 0}
.nbs .streams .bar button{min-height:26px}
.nbs .streams .tools{display:inline-flex;flex-wrap:wrap;gap:4px}
.nbs .streams .count,.nbs .streams .legend{color:var(--s-faint);font-size:12px;font-variant-numeric:tabular-nums}
.nbs .streams .legend .key{white-space:nowrap}.nbs .streams .legend .run{color:var(--s-fg)}
.nbs .streams .legend .run::before{content:none}
.nbs .streams .lanes{max-height:min(75vh,680px);overflow:auto;overscroll-behavior:auto;border:1px solid var(--s-line);border-radius:6px;padding:4px 6px}
.nbs .streams .lanes:empty{display:none}
.nbs .streams .lane{display:flex;align-items:stretch;content-visibility:auto;contain-intrinsic-size:auto 30px;border-radius:4px}
.nbs .streams .rails{display:flex;flex:none}
.nbs .streams .rail{flex:none;width:20px;position:relative}
.nbs .streams .rail.on::before{content:"";position:absolute;left:9px;top:0;bottom:0;border-left:1.5px solid var(--s-grey)}
.nbs .streams .rail.arm::after{content:"";position:absolute;left:9px;right:-1px;top:0;height:14px;border:solid var(--s-grey);border-width:0 0 1.5px 1.5px;border-bottom-left-radius:6px}
.nbs .streams .rail.back{background:no-repeat right 0 bottom 5px/11px 1.5px linear-gradient(var(--s-grey),var(--s-grey))}
.nbs .streams .box{flex:1 1 auto;min-width:0;margin:2px 0 4px;padding:1px 6px 2px 8px;border-left:4px solid var(--s-c);cursor:pointer}
.nbs .streams .lane{--s-c:var(--s-grey)}
.nbs .streams .lane[data-state=running]{--s-c:var(--s-blue)}.nbs .streams .lane[data-state=done],.nbs .streams .lane[data-state=joined]{--s-c:var(--s-green)}
.nbs .streams .lane[data-state=failed]{--s-c:var(--s-red)}.nbs .streams .lane[data-state=cancelled]{--s-c:var(--s-orange)}
.nbs .streams .lane[data-state=waiting] .box{border-left-style:dotted}.nbs .streams .lane[data-state=failed] .box{border-left-style:dashed}
.nbs .streams .lane[data-state=cancelled] .box{border-left-style:dashed}.nbs .streams .lane[data-state=joined] .box{border-left-style:double}
.nbs .streams .lane.marked .box{background:var(--s-soft);box-shadow:inset 0 0 0 1.5px var(--s-c);border-radius:0 4px 4px 0}
.nbs .streams .head{display:flex;flex-wrap:wrap;align-items:baseline;gap:1px 8px;min-height:22px}
.nbs .streams .lane[aria-expanded=false] .head{flex-wrap:nowrap;white-space:nowrap}
.nbs .streams .lanes button{min-height:0}
.nbs .streams .toggle{border:0;background:none;padding:0;width:14px;flex:none;color:var(--s-faint)}
.nbs .streams .sign{flex:none;color:var(--s-c);font-weight:700}
.nbs .streams .label{overflow-wrap:anywhere;min-width:0;unicode-bidi:isolate}
.nbs .streams .lane[aria-expanded=false] .label{flex:none;max-width:40%;overflow:hidden;text-overflow:ellipsis}
.nbs .streams .state,.nbs .streams .figures,.nbs .streams .hint{flex:none;max-width:100%;color:var(--s-faint);font-size:12px;font-variant-numeric:tabular-nums}
.nbs .streams .lane[aria-expanded=true] .figures{flex:0 1 auto}
.nbs .streams .goes-on .state{font-style:italic}
.nbs .streams .tail{flex:1 1 0;min-width:40px;overflow:hidden;display:flex;justify-content:flex-end;white-space:pre;font:12px/1.6 var(--s-mono);unicode-bidi:isolate}
.nbs .streams .tail::after{content:"";flex:1 1 0}
.nbs .streams .head button:not(.toggle){font-size:12px;padding:0 7px;flex:none}
.nbs .streams .cancel,.nbs .streams .head .hint{margin-left:auto}
.nbs .streams .share{display:flex;height:5px;max-width:420px;margin:2px 0 3px;border-radius:2px;overflow:hidden}
.nbs .streams .share span{flex:0 0 0}.nbs .streams .share .cached{background:repeating-linear-gradient(135deg,var(--s-blue) 0 3px,color-mix(in srgb,var(--s-blue) 35%,var(--s-bg)) 3px 6px)}
.nbs .streams .share .prefilled{background:var(--s-grey)}.nbs .streams .share .gen{background:var(--s-green)}
.nbs .streams .text{max-height:260px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.75 var(--s-mono);cursor:auto;padding-bottom:2px}
.nbs .streams .chip{margin-right:4px;unicode-bidi:isolate;border-radius:3px;cursor:pointer}
.nbs .streams .chip.marked{outline:2px solid var(--s-fg);outline-offset:1px}
.nbs .streams .chip.role{border:1px solid var(--s-line);padding:0 5px;font:600 11px/1.4 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--s-faint);background:var(--s-soft)}
.nbs .streams .name{color:var(--s-faint);font-weight:700}.nbs .streams .note{color:var(--s-faint)}
.nbs .streams .gen>.name{color:var(--s-green)}.nbs .streams .choice>.name{color:var(--s-purple)}.nbs .streams .partial>.name{color:var(--s-orange)}
.nbs .streams .run{--s-k:var(--s-grey);background:color-mix(in srgb,var(--s-k) var(--s-tint,0%),transparent);border-bottom:1px solid transparent;padding:1px 1px 0;box-decoration-break:clone;-webkit-box-decoration-break:clone}
.nbs .streams .run.literal{border-bottom:1px dotted var(--s-k)}
.nbs .streams .run.value{border-bottom:1px dotted var(--s-k);font-style:italic}
.nbs .streams .run.cached{--s-k:var(--s-blue);border-bottom:2px dotted var(--s-k);background:repeating-linear-gradient(135deg,color-mix(in srgb,var(--s-k) 20%,transparent) 0 2px,transparent 2px 7px)}
.nbs .streams .run.prefilled{--s-tint:12%;border-bottom:1px solid var(--s-k)}
.nbs .streams .run.cached::before{content:"● ";color:var(--s-k);font-size:9px}.nbs .streams .run.prefilled::before{content:"○ ";color:var(--s-faint);font-size:9px}
.nbs .streams .run.gen{--s-k:var(--s-green);--s-tint:16%;border-bottom:2px solid var(--s-k)}
.nbs .streams .run.constrained{--s-k:var(--s-green);--s-tint:16%;border-bottom:2px solid var(--s-k);border-top:1px dashed var(--s-k)}
.nbs .streams .run.jumped{--s-k:var(--s-yellow);--s-tint:24%;text-decoration:underline wavy var(--s-k) 1.5px;text-underline-offset:3px}
.nbs .streams .run.jumped::before{content:"»";color:var(--s-k);font-weight:700;display:inline-block}
.nbs .streams .run.choice{--s-k:var(--s-purple);--s-tint:18%;border-bottom:3px double var(--s-k)}
.nbs .streams .run.partial{--s-k:var(--s-orange);--s-tint:18%;border-bottom:2px dashed var(--s-k)}
.nbs .streams .run.none{border-bottom:1px dotted var(--s-k)}
.nbs .streams .run.l0{--s-k:var(--s-blue);--s-tint:6%}
.nbs .streams .run.l1{--s-k:var(--s-sky);--s-tint:26%;border-bottom:2px dotted var(--s-k)}
.nbs .streams .run.l2{--s-k:var(--s-yellow);--s-tint:30%;border-bottom:2px dashed var(--s-k)}
.nbs .streams .run.l3{--s-k:var(--s-orange);--s-tint:42%;border-bottom:2px solid var(--s-k)}
.nbs .streams .run.l4{--s-k:var(--s-red);--s-tint:48%;border-bottom:4px double var(--s-k);font-weight:700}
.nbs .streams .chip.live::after{content:"▌";color:var(--s-c)}
.nbs .streams .fold,.nbs .streams .more{font:11px/1.3 var(--jp-ui-font-family,system-ui,sans-serif)!important;padding:0 6px!important;margin:0 4px!important;border-style:dashed!important}
.nbs .streams .error{color:var(--s-red);white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;max-height:140px;overflow:auto;unicode-bidi:isolate}
.nbs .streams .left{margin-top:4px}.nbs .streams .empty{padding:14px;color:var(--s-faint)}
.nbs .streams .news{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
@media (prefers-reduced-motion:no-preference){.nbs .streams .chip.live::after{animation:nbs-streams-caret 1s steps(2) infinite}@keyframes nbs-streams-caret{50%{opacity:.15}}}
`;
