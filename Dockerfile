# The image of the daemon: `docker build .` in a clone builds it. It contains only the static binary and the certificate
# authorities that every system trusts.
FROM docker.io/library/node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS assets
COPY assets /assets
RUN /assets/fetch.sh

FROM docker.io/library/rust:1.95.0-trixie@sha256:f49565f188ee00bc2a18dd418183f2c5f23ef7d6e691890517ed341a598f67c3 AS build
WORKDIR /src
COPY . .
COPY --from=assets /assets/vendor assets/vendor
RUN make build \
	&& install -D target/*/release/crownlabs /image/crownlabs \
	&& install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

# All files of the image. images/build.sh passes a folder in place of this stage, with a binary that was built before.
FROM scratch AS files
COPY --from=build /image /

# images/build.sh adds the labels `version` and `revision`.
FROM scratch
LABEL org.opencontainers.image.title="crownlabs" \
      org.opencontainers.image.description="One daemon that runs every control loop of a CrownLabs cluster" \
      org.opencontainers.image.source="https://github.com/OWNER/crownlabs" \
      org.opencontainers.image.licenses="Apache-2.0"
# The stage has only the files of the image.
# hadolint ignore=DL3067
COPY --from=files / /
USER 20000:20000
ENTRYPOINT ["/crownlabs"]
