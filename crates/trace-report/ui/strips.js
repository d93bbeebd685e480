// Slices of a row are one line of pixels, which is drawn as high as the row. That costs a fraction of a rectangle
// for each.

/** Lines at first. */
const LINES = 64;
/** More pixels than this have a gap behind them. */
const GAP = 4;

export class Strips {
  constructor() {
    this.width = 0;
    this.ratio = 1;
    /** @type {ImageData | null} */
    this.image = null;
    this.pixels = new Uint32Array(0);
    /** Where each line is to be drawn, and how high. @type {[number, number][]} */
    this.places = [];
    /** @type {CanvasRenderingContext2D | null} */
    this.context = null;
  }

  /** Begins a picture. @param {number} width in pixels of the screen @param {number} ratio */
  begin(width, ratio) {
    this.ratio = ratio;
    if (width !== this.width || !this.image) this.make(width, LINES);
  }

  /** @param {number} width @param {number} lines */
  make(width, lines) {
    const old = this.width === width ? this.pixels : null;
    this.width = width;
    this.image = new ImageData(Math.max(width, 1), lines);
    this.pixels = new Uint32Array(this.image.data.buffer);
    if (old) this.pixels.set(old);
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [this.image.width, lines];
    this.context = canvas.getContext('2d');
  }

  /** A line for a row: where its pixels begin. @param {number} y @param {number} height */
  line(y, height) {
    const line = this.places.push([y, height]) - 1;
    if ((line + 1) * this.width > this.pixels.length) this.make(this.width, 2 * line);
    return line * this.width;
  }

  /** Adds a slice, with a gap behind it if there is room. @param {number} line @param {number} from
   * @param {number} to @param {number} pixel */
  put(line, from, to, pixel) {
    const first = Math.round(from * this.ratio);
    const size = Math.round(to * this.ratio) - first;
    const last = first + (size > GAP ? size - 1 : Math.max(size, 1));
    this.pixels.fill(pixel, line + Math.max(first, 0), line + Math.min(last, this.width));
  }

  /** Draws all lines. @param {CanvasRenderingContext2D} target */
  flush(target) {
    const {places, width, ratio, image, context} = this;
    if (places.length === 0 || !image || !context) return;
    context.putImageData(image, 0, 0, 0, 0, width, places.length);
    target.imageSmoothingEnabled = false;
    places.forEach(([y, height], line) =>
      target.drawImage(context.canvas, 0, line, width, 1, 0, y, width / ratio, height),
    );
    this.pixels.fill(0, 0, places.length * width);
    places.length = 0;
  }
}
