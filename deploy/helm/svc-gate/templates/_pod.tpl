{{- define "svc-gate.pod" -}}
metadata:
  labels: {{- include "svc-gate.labels" . | nindent 4 }}
  annotations:
    {{- if not .Values.contracts.configMap }}
    contracts: {{ .Values.contracts.files | toJson | sha256sum }} # if they change, the pods are replaced
    {{- end }}
    kubectl.kubernetes.io/default-container: gate
spec:
  serviceAccountName: {{ include "svc-gate.name" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false # they would set variables that begin with SVC_
  terminationGracePeriodSeconds: 45
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "svc-gate.rights" . | nindent 4 }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: { matchLabels: {{ include "svc-gate.selector" $ | fromYaml | toJson }} }
    {{- end }}
  containers:
    - name: gate
      image: {{ include "svc-gate.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext: {{- include "svc-gate.containerRights" . | nindent 8 }}
      env:
        {{- with .Values.mode }}
        - { name: SVC_MODE, value: {{ . | quote }} }
        {{- end }}
        - { name: SVC_LOG, value: {{ .Values.log | quote }} }
        - { name: SVC_HOST, value: 0.0.0.0 }
        - { name: SVC_PORT, value: "8787" }
        - { name: SVC_OPS_HOST, value: 0.0.0.0 }
        - { name: SVC_OPS_PORT, value: "8788" }
        - { name: SVC_DATA_DIR, value: /data }
        - { name: SVC_MANDATE, value: /contracts/mandate.yaml }
        {{- if or .Values.contracts.tenants (and (not .Values.contracts.configMap) (hasKey .Values.contracts.files "tenants.yaml")) }}
        - { name: SVC_TENANTS, value: /contracts/tenants.yaml }
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - { name: SVC_TLS_CERT, value: /tls/tls.crt }
        - { name: SVC_TLS_KEY, value: /tls/tls.key }
        {{- end }}
        {{- with .Values.database }}
        {{- if .existingSecret }}
        - name: SVC_DATABASE_URL
          valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .key }} } }
        {{- end }}
        {{- end }}
        {{- with .Values.consoleSecret }}
        {{- if .existingSecret }}
        - name: SVC_CONSOLE_SECRET
          valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .key }} } }
        {{- end }}
        {{- end }}
        {{- with .Values.apiKey }}
        {{- if .existingSecret }}
        - name: SVC_API_KEY
          valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .key }} } }
        {{- else if $.Values.database.existingSecret }}
        {{- fail "apiKey.existingSecret: replicas cannot each make a first key; name a Secret that holds one" }}
        {{- end }}
        {{- end }}
        {{- with .Values.signingKey }}
        {{- if .existingSecret }}
        - name: SVC_SIGNING_KEY # the key itself, because the gate refuses a file that its group can read, as in a volume
          valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .key }} } }
        {{- else if $.Values.database.existingSecret }}
        {{- fail "signingKey.existingSecret: replicas share the key that signs heads; name a Secret that holds one" }}
        {{- end }}
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        - { name: {{ $name }}, value: {{ $value | quote }} }
        {{- end }}
      ports:
        - { name: http, containerPort: 8787 }
        - { name: ops, containerPort: 8788 }
      # A start may compute a new counter from years of receipts.
      startupProbe:
        httpGet: { path: /health, port: ops }
        periodSeconds: 2
        failureThreshold: 300
      # Soon out of the Service, restarted late: a restart does not fix a full disk or a database that is down.
      readinessProbe:
        httpGet: { path: /ready, port: ops }
        periodSeconds: 5
        failureThreshold: 2
      livenessProbe:
        httpGet: { path: /health, port: ops }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 30
      lifecycle:
        preStop: { sleep: { seconds: 5 } } # until no more requests are sent here
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: contracts, mountPath: /contracts, readOnly: true }
        {{- if .Values.tls.existingSecret }}
        - { name: tls, mountPath: /tls, readOnly: true }
        {{- end }}
  volumes:
    - name: contracts
      configMap: { name: {{ include "svc-gate.contracts" . }} }
    {{- if .Values.database.existingSecret }}
    - name: data
      emptyDir: { sizeLimit: 64Mi }
    {{- end }}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
