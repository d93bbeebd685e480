(async () => {
  const text = document.getElementById('code').textContent;
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const script = document.createElement('script');
  script.src = URL.createObjectURL(new Blob([await new Response(stream).text()], {type: 'text/javascript'}));
  document.head.append(script);
})().catch((error) => {
  document.querySelector('#overview p').textContent = `This page needs a browser of 2023 or newer (${error}).`;
});
