// Runs on the thread of the audio: hands on what the microphone hears.
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: typeof AudioWorkletProcessor): void;

class Recorder extends AudioWorkletProcessor {
  process([input]: Float32Array[][]): boolean {
    const heard = input?.[0];
    if (heard) this.port.postMessage(heard.slice());
    return true;
  }
}

registerProcessor("shoal-recorder", Recorder);
