// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/work/engine/compare"
)

func TestAddDefaults(t *testing.T) {
	const defaulted = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {a: b}}, spec: {
		replicas: 1, paused: true, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 1}},
		template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: main, image: x, imagePullPolicy: Always, tty: true, ports: [{containerPort: 80, protocol: TCP}]}, {name: side, image: y}]}}}}`
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {paused: false,
		template: {spec: {containers: [{name: main, image: x, ports: [{containerPort: 80}]}]}}}}`
	const main = `"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":`
	cases := map[string]struct {
		managers []metav1.ManagedFieldsEntry
		want     []string
	}{
		"defaults of our own write": {
			[]metav1.ManagedFieldsEntry{managed("us", `{"f:spec":{"f:replicas":{},"f:strategy":{".":{},"f:type":{}}}}`, metav1.Time{})},
			[]string{"/spec/paused", "/spec/template/spec/containers/1"}},
		"a field in a map with defaults, and one in an item": {
			[]metav1.ManagedFieldsEntry{managed("us", "{}", metav1.Time{}), managed("kubectl-edit", `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}},`+main+`{"f:tty":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:protocol":{}}}}}}}}}`, metav1.Time{})},
			[]string{"/spec/paused", "/spec/strategy/rollingUpdate/maxSurge", "/spec/template/spec/containers/0/ports/0/protocol", "/spec/template/spec/containers/0/tty", "/spec/template/spec/containers/1"}},
		"all of another client": {
			[]metav1.ManagedFieldsEntry{managed("kubectl-create", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:paused":{},"f:strategy":{},`+main+`{".":{},"f:imagePullPolicy":{},"f:name":{}}},"f:dnsPolicy":{}}}}}`, metav1.Time{})},
			[]string{"/metadata/labels/a", "/spec/paused", "/spec/replicas", "/spec/strategy", "/spec/template/spec/containers/0/imagePullPolicy",
				"/spec/template/spec/containers/1", "/spec/template/spec/dnsPolicy"}},
		"an object that does not show its managers": {nil,
			[]string{"/metadata/labels/a", "/spec/paused", "/spec/replicas", "/spec/strategy", "/spec/template/spec/containers/0/imagePullPolicy",
				"/spec/template/spec/containers/0/ports/0/protocol", "/spec/template/spec/containers/0/tty", "/spec/template/spec/containers/1", "/spec/template/spec/dnsPolicy"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted, live := objectOfYAML(t, manifest), objectOfYAML(t, defaulted)
			live.SetManagedFields(tc.managers)
			addDefaults(wanted, live, "us")
			var paths []string
			for _, detail := range compare.Objects(wanted, live) {
				paths = append(paths, detail.Path)
			}
			if diff := cmp.Diff(tc.want, paths); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
