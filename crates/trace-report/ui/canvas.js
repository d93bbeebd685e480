// Canvases that are as sharp as the screen.

/** Sizes of canvases, so that no frame asks for them, which would have everything laid out at once.
 * @type {Map<HTMLCanvasElement, [number, number]>} */
const sizes = new Map();

/** Notes sizes when they change. @param {HTMLCanvasElement[]} canvases @param {() => void} change */
export function watchSizes(canvases, change) {
  const observer = new ResizeObserver(() => {
    for (const canvas of canvases) sizes.set(canvas, [canvas.clientWidth, canvas.clientHeight]);
    change();
  });
  for (const canvas of canvases) observer.observe(canvas);
}

/** Makes a canvas as sharp as the screen. @param {HTMLCanvasElement} canvas */
export function sized(canvas) {
  const ratio = devicePixelRatio || 1;
  const known = sizes.get(canvas);
  // One that was hidden is measured.
  const [width, height] = known && known[0] > 0 ? known : [canvas.clientWidth, canvas.clientHeight];
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', {alpha: false}));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width, height};
}
