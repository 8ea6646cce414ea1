# The image of the daemon: `docker build .` in a clone builds it. It contains only the static binary and the certificate
# authorities that every system trusts.
FROM docker.io/library/node:24-slim AS assets
COPY assets /assets
RUN /assets/fetch.sh

FROM docker.io/library/rust:1.95 AS build
WORKDIR /src
COPY . .
COPY --from=assets /assets/vendor assets/vendor
RUN make build \
	&& install -D target/*/release/crownlabs /image/crownlabs \
	&& install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

# All files of the image. images/build.sh passes a folder in place of this stage, with a binary that was built before.
FROM scratch AS files
COPY --from=build /image /

FROM scratch
COPY --from=files / /
USER 20000:20000
ENTRYPOINT ["/crownlabs"]
