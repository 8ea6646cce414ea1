# A static binary, in an image with nothing else but the authorities that every system knows.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache ca-certificates gcc musl-dev
WORKDIR /src
COPY Cargo.toml Cargo.lock rust-toolchain.toml ./
COPY config config
COPY src src
COPY benches benches
RUN cargo build --release --locked --bin crownlabs

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/target/release/crownlabs /crownlabs
USER 20000:20000
ENTRYPOINT ["/crownlabs"]
