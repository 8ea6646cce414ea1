# Nothing but a static binary and the authorities that every system knows. images/build.sh puts both beside this file.
FROM scratch
COPY etc /etc
COPY crownlabs /crownlabs
USER 20000:20000
ENTRYPOINT ["/crownlabs"]
