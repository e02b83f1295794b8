# The gate in a container: one process, as a user without rights, all of its state in /data.
#
#   docker build -t svc-gate .
#   docker run --name gate -p 8787:8787 -v svc-gate:/data svc-gate   a new gate observes
#   docker exec gate cat /data/first-key                             its API key
#   docker exec gate node bin/svc-gate.mjs reload --mode enforce     enforces, after a restart too
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges ...  works as well: only /data is written
#
# SVC_MODE is not set here: a restart must not undo a reload. compose.yaml adds PostgreSQL, Prometheus and Grafana.
#
# Your own contracts: mount them, and name the mandate with -e SVC_MANDATE=/contracts/mandate.yaml.

ARG NODE=26.10.0-slim

FROM node:${NODE} AS modules
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/svc-gate/package.json packages/svc-gate/
COPY packages/workbench/package.json packages/workbench/
COPY packages/agent/package.json packages/agent/
# The optional packages are runtimes for machines with an older Node: the image has the right one.
RUN npm ci --workspace=packages/svc-gate --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:${NODE}
LABEL org.opencontainers.image.title="svc-gate" \
      org.opencontainers.image.description="The action gate: may this AI agent's tool call run?" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production SVC_HOST=0.0.0.0 SVC_PORT=8787 SVC_DATA_DIR=/data
WORKDIR /app
COPY --from=modules /app/node_modules node_modules
COPY . .
RUN install -d -o node -g node node_modules/.cache && install -d -m 0700 -o node -g node /data
USER node
# Compiles the contracts, so that a wrong one fails here, and leaves the compiled code of the gate in the image.
RUN node bin/svc-gate.mjs check
VOLUME /data
EXPOSE 8787
# The certificate is of the gate's public name, not of the loopback address asked here.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["node", "-e", "const { SVC_PORT: port = 8787, SVC_BASE_PATH: path = '', SVC_TLS_CERT: tls } = process.env; if (tls) process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; fetch(`http${tls ? 's' : ''}://127.0.0.1:${port}${path}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"]
