"""Speaks with a Python library for HTTP.   speak.py LIBRARY URL KEY FOLDER

Leaves FOLDER/LIBRARY.FORMAT, and prints {FORMAT: [status, media type, pieces]} and the answer to a wrong request, as JSON.
"""

import asyncio
import json
import sys

library, url, key, folder = sys.argv[1:]
formats = ["mp3", "opus", "aac", "flac", "wav", "pcm"]
headers = {"Authorization": f"Bearer {key}"}


def body(response_format):
    text = "The train leaves at noon. " * 4
    return {"model": "tts-1", "voice": "nora", "input": text, "response_format": response_format, "seed": 3}


def keep(response_format, pieces):
    with open(f"{folder}/{library}.{response_format}", "wb") as file:
        for count, piece in enumerate(pieces, 1):
            file.write(piece)
    return count


def with_requests(response_format):
    import requests
    with requests.post(url, json=body(response_format), headers=headers, stream=True, timeout=60) as answer:
        if answer.status_code != 200:
            return answer.status_code, answer.json()
        return 200, answer.headers["content-type"], keep(response_format, answer.iter_content(None))


def with_httpx(response_format):
    import httpx
    with httpx.Client(timeout=60) as client, client.stream("POST", url, json=body(response_format), headers=headers) as answer:
        if answer.status_code != 200:
            answer.read()
            return answer.status_code, answer.json()
        return 200, answer.headers["content-type"], keep(response_format, answer.iter_bytes())


async def aiohttp_answer(response_format):
    import aiohttp
    async with aiohttp.ClientSession() as client, client.post(url, json=body(response_format), headers=headers) as answer:
        if answer.status != 200:
            return answer.status, await answer.json()
        pieces = [piece async for piece in answer.content.iter_any()]
        return 200, answer.content_type, keep(response_format, pieces)


def with_aiohttp(response_format):
    return asyncio.run(aiohttp_answer(response_format))


ask = {"requests": with_requests, "httpx": with_httpx, "aiohttp": with_aiohttp}[library]
print(json.dumps({name: ask(name) for name in [*formats, "mp4"]}))
