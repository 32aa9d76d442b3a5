# An image that serves a model. Build: docker build -t regard .
# Run: docker run -p 8000:8000 -v "$PWD/runs/words-1:/model:ro" -v "$PWD/key:/key:ro" regard
FROM python:3.11-slim
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# The CPU build of PyTorch: a tenth of the size of the default build.
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu torch==2.13.0 \
    && pip install --no-cache-dir -c constraints.txt '.[serve]' && rm -rf /src
RUN useradd --system regard
USER regard
WORKDIR /
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["regard", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
# Everyone who reaches the port may ask the model; with a key, only those who know it.
CMD ["--api-key-file", "/key"]
