# The image, built with a container engine: docker build -t tasard . make release builds the same image for amd64 and
# arm64 without an engine. The context is a checkout; the version comes from its .git.
ARG GO_VERSION=1.26.8

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH
# buildvcs=auto builds a context without .git too; its version is unknown.
RUN git config --global --add safe.directory /src \
 && CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=auto $(cat .ci/smaller) -o /out/usr/bin/tasard .
# A user, root certificates, and a place to write.
RUN mkdir -p /out/etc/ssl/certs /out/etc/tasard /out/var/lib /out/tmp /data/tasard \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && cp packaging/image/tasard.toml /out/etc/tasard/ \
 && printf 'root:x:0:0:root:/:/nologin\ntasard:x:65532:65532:tasard:/var/lib/tasard:/nologin\n' >/out/etc/passwd \
 && printf 'root:x:0:\ntasard:x:65532:\n' >/out/etc/group \
 && chmod 1777 /out/tmp && chmod 0700 /data/tasard

FROM scratch
COPY --from=build /out/ /
# Not every builder keeps owners.
COPY --from=build --chown=65532:65532 /data/ /var/lib/
ENV PATH=/usr/bin TASARD_CONFIG=/etc/tasard/tasard.toml
USER 65532:65532
WORKDIR /var/lib/tasard
VOLUME /var/lib/tasard
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=5m CMD ["/usr/bin/tasard", "ping", "--live"]
ENTRYPOINT ["/usr/bin/tasard"]
CMD ["serve"]
