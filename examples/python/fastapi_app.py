"""Speech over HTTP in 30 lines of FastAPI; a client that leaves cancels its speech.   uvicorn fastapi_app:app"""
import shoal
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response, StreamingResponse

app = FastAPI()
engine = shoal.Engine()


@app.on_event("shutdown")
def close():
    engine.close(grace=5)


@app.get("/speech")
async def speech(text: str, voice: str = "clara", seed: int = 7, format: str = "wav"):
    try:
        spoken = await engine.speak_async(text, voice=voice, seed=seed)
        return Response(spoken.to_bytes(format), media_type=f"audio/{format}")
    except shoal.ResourceExhausted as error:
        raise HTTPException(503, str(error))
    except shoal.Error as error:
        raise HTTPException(400, str(error))


@app.get("/stream")  # 16-bit samples as they are made
async def stream(text: str, voice: str = "clara"):
    chunks = engine.stream_async(text, voice=voice)
    headers = {"X-Sample-Rate": str(chunks.sample_rate)}
    return StreamingResponse((chunk.pcm16 async for chunk in chunks), media_type="audio/pcm", headers=headers)
