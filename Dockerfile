# docker build -t mixmem . && docker run --rm -v "$PWD:/data" mixmem fit answers.sav -k 4 --out result
FROM python:3.12-slim
COPY . /source
RUN pip install --no-cache-dir "/source[survey,excel,arrow,duckdb,zstd]" \
    # kernels are compiled once, here, and not at every first fit
    && NUMBA_CACHE_DIR=/opt/numba mixmem demo --out /tmp/demo --quiet && rm -r /tmp/demo /source && chmod -R a+rwX /opt/numba
ENV NUMBA_CACHE_DIR=/opt/numba
WORKDIR /data
ENTRYPOINT ["mixmem"]
CMD ["--help"]
