// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestStrip(t *testing.T) {
	cases := map[string]struct{ reason, have, want string }{
		"metadata and status": {
			reason: "what a server made goes, what the user wrote stays",
			have: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 0f
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 0
  selfLink: /x
  managedFields: [{manager: kubectl}]
  ownerReferences: [{name: x}]
  finalizers: [example.com/keep]
  labels: {app: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    deployment.kubernetes.io/revision: "1"
    example.com/keep: "yes"
spec: {replicas: 1}
status: {replicas: 1}
`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  finalizers: [example.com/keep]
  labels: {app: web}
  annotations: {example.com/keep: "yes"}
spec: {replicas: 1}
`,
		},
		"annotations that are left empty": {
			reason: "an object with only server annotations equals one without any",
			have:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}",
			want:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		},
		"Service": {
			reason: "addresses and ports that the hub allocated mean nothing elsewhere",
			have: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.1
  clusterIPs: [10.0.0.1]
  healthCheckNodePort: 30000
  ports: [{port: 80, nodePort: 30001}, {port: 81}]
status: {loadBalancer: {}}
`,
			want: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}, {port: 81}]}
`,
		},
		"headless Service": {
			reason: "None is the user's word",
			have:   "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
			want:   "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
		},
		"a kind named Service in another group": {
			have: "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: x}}",
			want: "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: x}}",
		},
		"Job": {
			reason: "the generated selector would match no pod of another cluster",
			have: `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: x}}
  template:
    metadata:
      creationTimestamp: null
      labels: {app: once, controller-uid: x, batch.kubernetes.io/controller-uid: x}
`,
			want: "{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {metadata: {labels: {app: once}}}}}",
		},
		"Job with a selector of its own": {
			have: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}",
			want: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.have)
			Strip(got)
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\nStrip() (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
