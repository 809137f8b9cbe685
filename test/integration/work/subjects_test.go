// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import "strings"

// subjects are the kinds of which sequences are tried. Their choices contain what merges get wrong:
// lists whose merge keys are not unique, fields of which one excludes the other, lists without
// keys, and texts around the size that fits into an annotation.
func subjects() []subject {
	return append(workloads(), []subject{
		{"configmap", "{apiVersion: v1, kind: ConfigMap}", false, [][]string{
			{"data: {a: one}", "data: {a: two, b: b}", "data: {a: $large}", `data: {a: ""}`},
			{"data: {c.yaml: c}"}, {"binaryData: {d: AAEC}"},
		}},
		{"secret", "{apiVersion: v1, kind: Secret}", false, [][]string{
			{"stringData: {a: one}", "stringData: {a: two, b: b}"}, {"data: {c: b25l}", "data: {c: dHdv, d: b25l}"},
		}},
		{"service", "{apiVersion: v1, kind: Service, spec: {ports: [{name: http, port: 80}]}}", true, [][]string{
			{"spec: {ports: [{name: udp, port: 53, protocol: UDP, targetPort: 5353}, {name: tcp, port: 53, protocol: TCP, targetPort: dns}]}",
				"spec: {ports: [{name: tcp, port: 53, targetPort: 54}, {name: http, port: 80}]}", "spec: {ports: [{name: http, port: 80, appProtocol: http}]}"},
			{"spec: {selector: {app: a}}", "spec: {selector: {tier: b}}"},
			{"spec: {sessionAffinity: ClientIP}", "spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}}"},
			{"spec: {type: NodePort}", "spec: {type: NodePort, externalTrafficPolicy: Local}"},
			{"spec: {internalTrafficPolicy: Local}"}, {"spec: {publishNotReadyAddresses: true}"},
		}},
		{"ingress", "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: d, port: {number: 80}}}}}", true, [][]string{
			{"spec: {rules: [{host: a.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}",
				"spec: {rules: [{host: a.example.org, http: {paths: [{path: /x, pathType: Exact, backend: {service: {name: a, port: {name: web}}}}]}}, {host: b.example.org}]}"},
			{"spec: {tls: [{hosts: [a.example.org], secretName: a}]}", "spec: {tls: [{secretName: b}]}"}, {"spec: {ingressClassName: c}"},
			{"spec: {defaultBackend: {service: {name: d, port: {number: 81}}}}"},
		}},
		{"networkpolicy", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}}}", true, [][]string{
			{"spec: {ingress: [{}]}", "spec: {ingress: [{from: [{podSelector: {matchLabels: {a: b}}}], ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}]}"},
			{"spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}], policyTypes: [Ingress, Egress]}"},
		}},
		{"pdb", "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {a: b}}}}", true, [][]string{
			{"spec: {minAvailable: 1}", "spec: {maxUnavailable: 10%}", "spec: {minAvailable: 50%}"}, {"spec: {unhealthyPodEvictionPolicy: AlwaysAllow}"},
		}},
		{"autoscaler", "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}", true, [][]string{
			{"spec: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}",
				"spec: {metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}]}",
				"spec: {metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}, {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}",
				"spec: {metrics: [{type: Pods, pods: {metric: {name: queue}, target: {type: AverageValue, averageValue: 1500m}}}, {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}]}"},
			{"spec: {minReplicas: 2}"}, {"spec: {behavior: {scaleDown: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}",
				"spec: {behavior: {scaleDown: {policies: [{type: Percent, value: 10, periodSeconds: 60}, {type: Pods, value: 1, periodSeconds: 60}]}}}"},
		}},
		{"role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: []}", false, [][]string{
			{`rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`, `rules: [{apiGroups: [""], resources: [pods, services], verbs: [list]}, {apiGroups: [apps], resources: ["*"], verbs: [get]}]`},
		}},
		{"binding", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}", true, [][]string{
			{"subjects: [{kind: User, name: a}, {kind: Group, name: a}, {kind: ServiceAccount, name: a, namespace: x}]", "subjects: [{kind: ServiceAccount, name: a, namespace: x}, {kind: User, name: a}]",
				"subjects: [{kind: User, name: b}, {kind: User, name: b}]"},
		}},
		{"limits", "{apiVersion: v1, kind: LimitRange, spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}}", true, [][]string{
			{"spec: {limits: [{type: Container, max: {cpu: '1'}}, {type: Pod, max: {cpu: '2'}}]}", "spec: {limits: [{type: Pod, max: {cpu: '2', memory: 1Gi}}, {type: Container, default: {cpu: 500m}}]}"},
		}},
		webhooks("validating", "ValidatingWebhookConfiguration"), webhooks("mutating", "MutatingWebhookConfiguration"),
		{"admissionpolicy", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [none.example.org], apiVersions: [v1], resources: [none]}]}, validations: [{expression: 'true'}]}}",
			true, [][]string{
				{"spec: {validations: [{expression: 'true', message: a}, {expression: 'true', message: b}]}", "spec: {validations: [{expression: 'true', message: b}, {expression: '1 == 1'}]}"},
				{"spec: {variables: [{name: a, expression: '1'}, {name: b, expression: '2'}]}", "spec: {variables: [{name: b, expression: '1'}, {name: a, expression: '2'}]}", "spec: {variables: [{name: b, expression: '3'}]}"},
				{"spec: {matchConditions: [{name: a, expression: 'true'}, {name: b, expression: 'true'}]}", "spec: {matchConditions: [{name: c, expression: 'true'}, {name: a, expression: '1 == 1'}]}"},
				{`spec: {auditAnnotations: [{key: a, valueExpression: "'a'"}, {key: b, valueExpression: "'b'"}]}`, `spec: {auditAnnotations: [{key: b, valueExpression: "'c'"}]}`},
			}},
		{"widget", "{apiVersion: $ns.sequences.example.org/v1, kind: Widget, spec: {}}", false, [][]string{
			{"spec: {size: 1}", "spec: {size: 2, colour: red}"}, {"spec: {free: {a: 1, b: {c: [1, 2]}}}", "spec: {free: {b: {c: [2], d: null}}}"},
			{"spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}", "spec: {ports: [{port: 53, protocol: UDP, name: dns}]}"},
			{"spec: {tags: [b, a]}", "spec: {tags: [a, c]}"}, {"spec: {words: [a, a, b]}", "spec: {words: []}"}, {"other: $large"},
		}},
	}...)
}

// webhooks is a kind of webhook configurations.
func webhooks(name, kind string) subject {
	hook := func(name, service string, operations string, more string) string {
		return "{name: " + name + ".example.org, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {service: {namespace: none, name: " + service + "}}, " +
			"rules: [{operations: [" + operations + "], apiGroups: [none.example.org], apiVersions: [v1], resources: [none]}]" + more + "}"
	}
	return subject{name, "{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind + ", webhooks: [" + hook("a", "a", "CREATE", "") + "]}", true, [][]string{{
		"webhooks: [" + hook("a", "a", "CREATE", "") + ", " + hook("b", "b", "CREATE, UPDATE", ", timeoutSeconds: 3") + "]",
		"webhooks: [" + hook("b", "a", "UPDATE, CREATE", "") + ", " + hook("a", "b", "CREATE", ", matchConditions: [{name: p, expression: 'true'}, {name: q, expression: 'true'}]") + "]",
		"webhooks: [" + hook("c", "a", "CREATE", ", namespaceSelector: {matchLabels: {a: b}}") + ", " + hook("a", "a", "CREATE", ", matchConditions: [{name: q, expression: '1 == 1'}, {name: r, expression: 'true'}]") + "]",
	}}}
}

// workloads are kinds with a Pod template.
func workloads() []subject {
	const template = "{metadata: {labels: {app: web}}, spec: {restartPolicy: Always, containers: [{name: main, image: 'example.org/web:1'}]}}"
	inTemplate := func(path string, parts ...string) []string {
		for i, part := range parts {
			parts[i] = strings.ReplaceAll(path, "$part", part)
		}
		return parts
	}
	pods := func(path string) [][]string {
		return [][]string{
			inTemplate(path, "containers: [{name: main, image: 'example.org/web:2', env: [{name: A, value: '1'}, {name: A, value: '2'}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]",
				"containers: [{name: main, image: 'example.org/web:2', env: [{name: B, value: x}]}, {name: side, image: 'example.org/side:1'}]",
				"containers: [{name: side, image: 'example.org/side:1'}, {name: main, image: 'example.org/web:3', ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}]",
				"containers: [{name: main, image: 'example.org/web:3', livenessProbe: {httpGet: {path: /, port: 80}}, resources: {limits: {cpu: '0.5', memory: 1Gi}}}]",
				"containers: [{name: main, image: 'example.org/web:3', livenessProbe: {exec: {command: [a, b]}}, args: [a, a], resources: {requests: {cpu: 500m}}}]",
				"containers: [{name: main, image: 'example.org/web:3', volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: c}]}], volumes: [{name: v, emptyDir: {}}]",
				"containers: [{name: main, image: 'example.org/web:3', volumeMounts: [{name: v, mountPath: /b}, {name: v, mountPath: /a, subPath: c}], envFrom: [{prefix: P_, configMapRef: {name: a}}, {secretRef: {name: b}}]}], volumes: [{name: v, emptyDir: {}}]",
				"containers: [{name: main, image: 'example.org/web:3', envFrom: [{secretRef: {name: b}}, {configMapRef: {name: b}}], env: [{name: B, value: x}, {name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]}]"),
			inTemplate(path, "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: host, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
				"topologySpreadConstraints: [{topologyKey: host, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}, {topologyKey: zone, maxSkew: 3, whenUnsatisfiable: ScheduleAnyway}, {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]",
				"topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}]"),
			inTemplate(path, "readinessGates: [{conditionType: example.org/a}, {conditionType: example.org/b}]", "readinessGates: [{conditionType: example.org/b}]"),
			inTemplate(path, "volumes: [{name: v, configMap: {name: c}}, {name: w, emptyDir: {medium: Memory}}]", "volumes: [{name: v, secret: {secretName: s}}]"),
			inTemplate(path, "nodeSelector: {disk: ssd}", "nodeSelector: {zone: a}"),
			inTemplate(path, "tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists, effect: NoSchedule}]", "tolerations: [{key: b, value: c}]"),
			inTemplate(path, "securityContext: {runAsNonRoot: true}", "securityContext: {fsGroup: 1, sysctls: []}"),
			inTemplate(path, "hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]", "hostAliases: [{ip: 10.0.0.1, hostnames: [b]}, {ip: 10.0.0.2, hostnames: [a]}]"),
			inTemplate(path, "imagePullSecrets: [{name: a}, {name: b}]", "imagePullSecrets: [{name: b}]"),
			inTemplate(path, "initContainers: [{name: init, image: 'example.org/init:1', restartPolicy: Always}]", "initContainers: [{name: first, image: 'example.org/init:1'}, {name: init, image: 'example.org/init:2'}]"),
		}
	}
	const inSpec = "spec: {template: {spec: {$part}}}"
	return []subject{
		{"deployment", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: " + template + "}}", true, append(pods(inSpec),
			[]string{"spec: {strategy: {type: Recreate}}", "spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}"},
			[]string{"spec: {paused: true}", "spec: {minReadySeconds: 5, revisionHistoryLimit: 3}"}, []string{"spec: {replicas: 2}"},
		)},
		{"statefulset", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, serviceName: web, selector: {matchLabels: {app: web}}, template: " + template + "}}", true, append(pods(inSpec),
			[]string{"spec: {updateStrategy: {type: OnDelete}}", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}"},
		)},
		{"daemonset", "{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {app: web}}, template: " + template + "}}", true, append(pods(inSpec),
			[]string{"spec: {updateStrategy: {type: OnDelete}}", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}}"},
		)},
		{"cronjob", "{apiVersion: batch/v1, kind: CronJob, spec: {schedule: 0 0 1 1 *, suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'example.org/web:1'}]}}}}}}",
			true, append(pods("spec: {jobTemplate: {spec: {template: {spec: {$part}}}}}"), []string{"spec: {timeZone: Etc/UTC}"}, []string{"spec: {concurrencyPolicy: Forbid, successfulJobsHistoryLimit: 0}"})},
	}
}

// widgetDefinition is of a kind with maps, defaults, sets, and lists with and without keys.
const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$ns.sequences.example.org}
spec:
  group: $ns.sequences.example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          other: {type: string}
          spec:
            type: object
            properties:
              size: {type: integer}
              colour: {type: string, default: blue}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              words: {type: array, items: {type: string}}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items: {type: object, required: [port, protocol], properties: {port: {type: integer}, protocol: {type: string}, name: {type: string}}}
`
