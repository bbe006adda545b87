// A run in JupyterLab's light and dark theme: which colours there are, and how well its words can be read.

const RUN = 1;
const THEMES = ["JupyterLab Light", "JupyterLab Dark"];

/** After a run: the theme is changed by the menu, while the view is there, and changed back. */
export async function colours(notebook) {
  const seen = {};
  for (const theme of [...THEMES].reverse().concat(THEMES[0])) {
    if ((await theme_of(notebook)) !== theme) await notebook.choose("Settings", "Theme", theme);
    await notebook.page.waitForFunction((theme) => document.body.dataset.jpThemeName === theme && getComputedStyle(document.body).getPropertyValue("--jp-layout-color1"), theme);
    seen[theme] = await notebook.page.evaluate(colours_of, RUN);
    for (const part of ["streams", "tree"]) {
      await notebook.cell(RUN).locator(`.nbs .${part}`).scrollIntoViewIfNeeded();
      await notebook.picture(`${theme.toLowerCase().replace(" ", "-")}-${part}`);
    }
  }
  return seen;
}

const theme_of = (notebook) => notebook.page.evaluate(() => document.body.dataset.jpThemeName);

/** In the page: colours of the view and of the notebook around it, and the contrast of each text with what is behind it (WCAG 2). */
function colours_of(n) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  /** Paint these colours over each other; what comes out, as [r, g, b]. */
  const painted = (colours) => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 1, 1);
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    const colours = [];
    for (let at = element; at !== null; at = at.parentElement) colours.unshift(getComputedStyle(at).backgroundColor);
    return colours;
  };
  const root = document.querySelectorAll(".jp-CodeCell")[n].querySelector(".nbs");
  const words = [];
  for (const element of root.querySelectorAll("*")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();
    if (!text || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.closest("svg, :disabled, option")) continue;
    const back = behind(element);
    words.push({ ratio: ratio(painted([...back, getComputedStyle(element).color]), painted(back)), text: text.slice(0, 40), of: element.className });
  }
  words.sort((one, other) => one.ratio - other.ratio);
  const style = getComputedStyle(root);
  const [back, front] = [painted([style.backgroundColor]), painted([style.color])];
  return {
    is_opaque: painted([style.backgroundColor]).join() === painted(["#000", style.backgroundColor]).join(),
    background: back, text: front, luminance: luminance(back), ratio: ratio(front, back), n_words: words.length, worst: words.slice(0, 5),
  };
}
