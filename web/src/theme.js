// Colours and type that all views share, as CSS variables: those of JupyterLab or VS Code where they are, else our own.
// The others are those of Okabe and Ito, mixed with the colour of the text: darker on light ground, lighter on dark.
//
// Both background and text are painted: some hosts put white behind an output, whatever their theme is.

export const css = `
.nbs{--nbs-page-bg:#fff;--nbs-page-fg:#1a1a1a;
--nbs-bg:var(--jp-layout-color1,var(--vscode-editor-background,var(--nbs-page-bg)));
--nbs-fg:var(--jp-ui-font-color1,var(--vscode-editor-foreground,var(--nbs-page-fg)));
--nbs-font:var(--jp-ui-font-family,var(--vscode-font-family,system-ui)),sans-serif;
--nbs-mono:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace)),Menlo,Consolas,"DejaVu Sans Mono",monospace;
--nbs-faint:color-mix(in srgb,var(--nbs-fg) 72%,var(--nbs-bg));--nbs-line:color-mix(in srgb,var(--nbs-fg) 22%,var(--nbs-bg));
--nbs-soft:color-mix(in srgb,var(--nbs-fg) 6%,var(--nbs-bg));
--nbs-green:color-mix(in srgb,#009e73 80%,var(--nbs-fg));--nbs-blue:color-mix(in srgb,#0072b2 78%,var(--nbs-fg));
--nbs-red:color-mix(in srgb,#d55e00 85%,var(--nbs-fg));--nbs-orange:color-mix(in srgb,#e69f00 75%,var(--nbs-fg));
--nbs-purple:color-mix(in srgb,#cc79a7 75%,var(--nbs-fg));--nbs-grey:color-mix(in srgb,var(--nbs-fg) 55%,var(--nbs-bg));
--nbs-sky:color-mix(in srgb,#56b4e9 82%,var(--nbs-fg));--nbs-yellow:color-mix(in srgb,#c9a400 84%,var(--nbs-fg));
background:var(--nbs-bg);color:var(--nbs-fg);font:13px/1.45 var(--nbs-font);padding:6px 10px 8px;box-sizing:border-box;min-width:0;text-align:left}
:root[theme=dark] .nbs{--nbs-page-bg:#1e1e1e;--nbs-page-fg:#e6e6e6}
@media (prefers-color-scheme:dark){.nbs.page{--nbs-page-bg:#1b1b1d;--nbs-page-fg:#e6e6e6}}
.nbs *{box-sizing:border-box}.nbs [hidden]{display:none!important}
.nbs button,.nbs select,.nbs input[type=search]{font:inherit;line-height:1.3;color:inherit;background:var(--nbs-soft);border:1px solid var(--nbs-line);border-radius:4px;padding:2px 8px;min-height:26px;margin:0}
.nbs button{cursor:pointer;white-space:nowrap}
.nbs button:hover{border-color:var(--nbs-fg)}.nbs button:disabled{opacity:.5;cursor:default;border-color:var(--nbs-line)}
.nbs button[aria-pressed=true]{border-color:var(--nbs-fg);box-shadow:inset 0 -3px var(--nbs-fg)}
.nbs button.link{background:none;border:0;padding:0 1px;min-height:0;text-decoration:underline;white-space:normal;text-align:left;overflow-wrap:anywhere}
.nbs :focus-visible{outline:2px solid var(--nbs-fg);outline-offset:1px}
.nbs-view>div{position:relative}
.nbs :is(.bar,.legend,.time){display:flex;flex-wrap:wrap;align-items:center;gap:4px 12px;padding:4px 0}
.nbs .tools{display:inline-flex;flex-wrap:wrap;align-items:center;gap:4px}
.nbs :is(.count,.tools .word,.legend){color:var(--nbs-faint);font-size:12px;font-variant-numeric:tabular-nums}.nbs .legend .key{white-space:nowrap}
.nbs .empty{padding:14px;color:var(--nbs-faint)}
.nbs .verbatim{font:12px/1.5 var(--nbs-mono);white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;direction:ltr}
.nbs .unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.nbs .tip{position:absolute;z-index:5;max-width:min(440px,92%);max-height:220px;overflow:hidden;padding:6px 9px;background:var(--nbs-bg);color:var(--nbs-fg);border:1px solid var(--nbs-fg);border-radius:5px;box-shadow:0 2px 8px #0005;pointer-events:none;font-size:12px;overflow-wrap:anywhere}
.nbs .tip .text{white-space:pre-wrap;font-variant-numeric:tabular-nums;unicode-bidi:isolate;direction:ltr}
.nbs-head{display:flex;flex-wrap:wrap;align-items:center;gap:2px 12px;min-height:30px}
.nbs-title{font-weight:600;overflow-wrap:anywhere;unicode-bidi:isolate}.nbs-state{color:var(--nbs-faint);font-variant-numeric:tabular-nums}
.nbs-grow{flex:1}.nbs-note{color:var(--nbs-red)}.nbs-fail{color:var(--nbs-red);overflow-wrap:anywhere;unicode-bidi:isolate;white-space:pre-wrap}
.nbs-section{margin-top:4px;border-top:1px solid var(--nbs-line)}
.nbs-section h3{margin:0;font:inherit;font-weight:600}
.nbs h3 button{background:none;border:0;padding:3px 0;font-weight:600;display:flex;align-items:center;gap:6px;width:100%;text-align:left}
.nbs h3 i{font-style:normal;width:1em;text-align:center}.nbs h3 i::before{content:"▸"}.nbs h3 [aria-expanded=true] i::before{content:"▾"}
.nbs-off{color:var(--nbs-red);padding:4px 0}
.nbs-page{margin:0;background:#fff}@media (prefers-color-scheme:dark){.nbs-page{background:#1b1b1d}}
.nbs.page{min-height:100vh;max-width:1500px;margin:0 auto;padding:12px 18px}
`;
