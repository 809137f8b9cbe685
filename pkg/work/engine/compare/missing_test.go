// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestNotKept(t *testing.T) {
	pod := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {" + spec + "}}"
	}
	container := func(fields string) string { return pod("containers: [{name: a, " + fields + "}]") }
	custom := func(spec string) string {
		return "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {" + spec + "}}"
	}
	service := func(spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {" + spec + "}}"
	}
	secret := func(fields string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: a}, " + fields + "}"
	}
	one := func(path, hub, member string) []Detail {
		return []Detail{{Path: path, ValueInHub: hub, ValueInMember: member}}
	}
	cases := map[string]struct {
		wanted, is string
		want       []Detail
	}{
		"the same":                           {container("image: i"), container("image: i"), nil},
		"a field that was pruned":            {custom("size: 1, color: red"), custom("size: 1"), one("/spec/color", "red", "")},
		"a map that was pruned":              {custom("a: {b: {c: 1}}"), custom("a: {}"), one("/spec/a/b", "map[c:1]", "")},
		"a field that was changed":           {custom("size: 5"), custom("size: 3"), one("/spec/size", "5", "3")},
		"a field of an item that was pruned": {custom("parts: [{name: a, x: 1}, {name: b, x: 2}]"), custom("parts: [{name: a, x: 1}, {name: b}]"), one("/spec/parts/1/x", "2", "")},
		"an item that was lost":              {custom("parts: [{name: a}, {name: b}]"), custom("parts: [{name: a}]"), one("/spec/parts/1", "map[name:b]", "")},
		"a label that was changed":           {"{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: c}}}", one("/metadata/labels/a", "b", "c")},
		"a finalizer that was lost":          {"{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [x]}}", "{apiVersion: v1, kind: ConfigMap, metadata: {}}", one("/metadata/finalizers", "[x]", "")},
		"a value of a Secret":                {secret("data: {a: aGlkZGVu}"), secret("data: {a: b3RoZXI=}"), one("/data/a", redacted, redacted)},
		"a key of a Secret":                  {secret("data: {a: aGlkZGVu}"), secret("type: Opaque"), one("/data", redacted, "")},
		"a port that a merge lost":           {service("ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]"), service("ports: [{port: 53, protocol: TCP}]"), one("/spec/ports/1", "map[port:53 protocol:UDP]", "")},
		"an image that a webhook changed":    {container("image: i"), container("image: mirror/i"), one("/spec/containers/0/image", "i", "mirror/i")},
		"an argument more":                   {container("args: [a]"), container("args: [a, b]"), one("/spec/containers/0/args", "[a]", "[a b]")},
		"another order of arguments":         {container("args: [a, b]"), container("args: [b, a]"), one("/spec/containers/0/args/0", "a", "b")},
		"a field that the Go type lacks":     {pod("color: red"), pod(""), one("/spec/color", "red", "")},
		"replicas of zero":                   {"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}", one("/spec/replicas", "0", "1")},
		"quantities":                         {container("resources: {requests: {cpu: '0.5', memory: 1024Mi}, limits: {cpu: 2}}"), container("resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '2'}}"), nil},
		"another quantity":                   {container("resources: {requests: {cpu: '0.5'}}"), container("resources: {requests: {cpu: 250m}}"), one("/spec/containers/0/resources/requests/cpu", "0.5", "250m")},
		"other forms of values in a custom resource": {
			custom("duration: 2160h, cpu: 1000m, memory: 1024Mi, number: 1, at: '2026-01-01T00:00:00.000Z', parts: [{renew: 90m}]"),
			custom("duration: 2160h0m0s, cpu: '1', memory: 1Gi, number: '1', at: '2026-01-01T01:00:00+01:00', parts: [{renew: 1h30m0s}]"), nil},
		"another duration of a custom resource": {custom("duration: 2160h"), custom("duration: 2160m"), one("/spec/duration", "2160h", "2160m")},
		"another form of a label": {"{apiVersion: example.com/v1, kind: Widget, metadata: {labels: {a: '1.0'}}}",
			"{apiVersion: example.com/v1, kind: Widget, metadata: {labels: {a: '1'}}}", one("/metadata/labels/a", "1.0", "1")},
		"another form of a value in a ConfigMap": {"{apiVersion: v1, kind: ConfigMap, data: {a: 1000m}}", "{apiVersion: v1, kind: ConfigMap, data: {a: '1'}}", one("/data/a", "1000m", "1")},
		"an injected container":                  {pod("containers: [{name: a, image: i}]"), pod("containers: [{name: proxy}, {name: a, image: i, env: [{name: X}]}]"), nil},
		"what the API server fills in":           {service("ports: [{port: 80}]"), service("clusterIP: 10.0.0.1, type: ClusterIP, ports: [{port: 80, protocol: TCP, targetPort: 80}]"), nil},
		"empty values that stand for defaults":   {service("clusterIP: '', type: '', externalIPs: [], ports: [{port: 80, protocol: '', nodePort: 0}]"), service("clusterIP: 10.0.0.1, type: ClusterIP, ports: [{port: 80, protocol: TCP, nodePort: 30080}]"), nil},
		"an empty group that stands for the default": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: '', kind: Role, name: a}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}", nil},
		"another group": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: example.com, kind: Role, name: a}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}", one("/roleRef/apiGroup", "example.com", "rbac.authorization.k8s.io")},
		"an empty class that is no default": {"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: ''}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: fast}}", one("/spec/storageClassName", "", "fast")},
		"an empty value of a custom resource": {custom("a: '', b: 0, c: false, d: {}, e: [], f: {g: ''}"), custom("x: 1"), nil},
		"an empty value that became another":  {custom("a: ''"), custom("a: x"), one("/spec/a", "", "x")},
		"nulls":                               {container("image: i, command: null"), container("image: i, command: [x]"), nil},
		"times that are not set":              {"{apiVersion: apps/v1, kind: Deployment, metadata: {creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null, labels: {a: b}}}}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {template: {metadata: {labels: {a: b}}}}}", nil},
		"a status in the manifest":            {"{apiVersion: v1, kind: Pod, status: {phase: Running}}", "{apiVersion: v1, kind: Pod, status: {phase: Pending}}", nil},
		"a whole number that is a float":      {custom("size: 1.0"), custom("size: 1"), nil},
		"tolerations of admission":            {pod("tolerations: [{key: a, operator: Exists}]"), pod("tolerations: [{key: a, operator: Exists}, {key: node.kubernetes.io/not-ready}]"), nil},
		"variables of one name":               {container("env: [{name: A, value: '1'}, {name: A, value: '2'}]"), container("env: [{name: A, value: '1'}, {name: A, value: '2'}]"), nil},
		"one of two variables of one name":    {container("env: [{name: A, value: '1'}, {name: A, value: '2'}]"), container("env: [{name: A, value: '1'}]"), one("/spec/containers/0/env/1/value", "2", "1")},
		"an item twice that is there once":    {custom("hosts: [a, a]"), custom("hosts: [a]"), nil},
		"a list of a custom resource in another order, with items of others": {custom("parts: [{name: a}, {name: b}]"), custom("parts: [{name: x}, {name: b}, {name: a, y: 1}]"), nil},
		"a base64 text in lines":        {secret("data: {a: \"aGlk\\nZGVu\"}"), secret("data: {a: aGlkZGVu}"), nil},
		"subsets that are packed again": {"{apiVersion: v1, kind: Endpoints, subsets: [{addresses: [{ip: 10.0.0.2}]}, {addresses: [{ip: 10.0.0.1}]}]}", "{apiVersion: v1, kind: Endpoints, subsets: [{addresses: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]}]}", nil},
		"rules of a role in the same number": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], verbs: [get], resources: [pods]}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], verbs: [get], resources: [pods]}]}", nil},
		"a rule of a role more": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [get]}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [get]}, {verbs: ['*']}]}", one("/rules", "[map[verbs:[get]]]", "[map[verbs:[get]] map[verbs:[*]]]")},
		"a percentage and a number": {"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}}}", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NotKept(scheme.Scheme, object(t, tc.wanted), object(t, tc.is))); diff != "" {
				t.Errorf("what was not kept (-want +got):\n%s", diff)
			}
		})
	}
}
