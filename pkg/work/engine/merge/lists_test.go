// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

var service = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

func TestThreeWay_ReplacesListsWhoseMergeKeyIsNotUnique(t *testing.T) {
	const meta = `"metadata":{"name":"s","resourceVersion":"7"}`
	const version = `"metadata":{"resourceVersion":"7"}`
	ports := func(list string) string { return `{"metadata":{"name":"s"},"spec":{"ports":[` + list + `]}}` }
	live := func(list string) string {
		return `{` + meta + `,"spec":{"clusterIP":"10.0.0.1","ports":[` + list + `]}}`
	}
	env := func(list string) string {
		return `{"metadata":{"name":"s"},"spec":{"template":{"spec":{"containers":[{"name":"a","env":[` + list + `]}]}}}}`
	}
	liveEnv := func(list string) string {
		return `{` + meta + `,"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"p"},{"name":"a","image":"i","env":[` + list + `]}]}}}}`
	}
	const tcp, udp = `{"name":"t","port":53,"protocol":"TCP"}`, `{"name":"u","port":53,"protocol":"UDP","targetPort":5353}`
	const tcpThere = `{"name":"t","port":53,"protocol":"TCP","targetPort":53,"nodePort":30053}`
	cases := map[string]struct {
		kind                        schema.GroupVersionKind
		original, modified, current string
		want                        string
	}{
		"a port for UDP beside one for TCP": {
			kind: service, original: ports(tcp), modified: ports(tcp + "," + udp), current: live(tcpThere),
			want: `{` + version + `,"spec":{"ports":[` + tcpThere + `,` + udp + `]}}`,
		},
		"both are there": {
			kind: service, original: ports(tcp + "," + udp), modified: ports(tcp + "," + udp), current: live(tcpThere + "," + udp),
		},
		"one of them leaves": {
			kind: service, original: ports(tcp + "," + udp), modified: ports(udp), current: live(tcpThere + "," + udp),
			want: `{` + version + `,"spec":{"ports":[` + udp + `]}}`,
		},
		"a port of somebody else stays": {
			kind: service, original: ports(tcp), modified: ports(tcp + "," + udp), current: live(tcpThere + `,{"name":"m","port":9153}`),
			want: `{` + version + `,"spec":{"ports":[` + tcpThere + `,` + udp + `,{"name":"m","port":9153}]}}`,
		},
		"a field of an item leaves": {
			kind: service, original: ports(`{"name":"t","port":53,"protocol":"TCP","appProtocol":"dns"},` + udp), modified: ports(tcp + "," + udp),
			current: live(`{"name":"t","port":53,"protocol":"TCP","appProtocol":"dns"},` + udp),
			want:    `{` + version + `,"spec":{"ports":[` + tcp + `,` + udp + `]}}`,
		},
		"all of them leave": {
			kind: service, original: ports(tcp + "," + udp), modified: `{"metadata":{"name":"s"},"spec":{}}`, current: live(tcpThere + "," + udp),
			want: `{` + version + `,"spec":{"ports":null}}`,
		},
		"variables of one name, in a container beside an injected one": {
			kind: deployment, original: env(`{"name":"A","value":"1"}`), modified: env(`{"name":"A","value":"1"},{"name":"A","value":"2"}`),
			current: liveEnv(`{"name":"A","value":"1"}`),
			want: `{` + version + `,"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"p"},` +
				`{"name":"a","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}`,
		},
		"variables of one name that are there": {
			kind: deployment, original: env(`{"name":"A","value":"1"},{"name":"A","value":"2"}`), modified: env(`{"name":"A","value":"1"},{"name":"A","value":"2"}`),
			current: liveEnv(`{"name":"A","value":"1"},{"name":"A","value":"2"}`),
		},
		"the value of one of them was changed on the member": {
			kind: deployment, original: env(`{"name":"A","value":"1"},{"name":"A","value":"2"}`), modified: env(`{"name":"A","value":"1"},{"name":"A","value":"2"}`),
			current: liveEnv(`{"name":"A","value":"1"},{"name":"A","value":"3"}`),
			want: `{` + version + `,"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"p"},` +
				`{"name":"a","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Merger{Known: scheme.Scheme}.ThreeWay(tc.kind, []byte(tc.original), []byte(tc.modified), []byte(tc.current))
			if err != nil {
				t.Fatal(err)
			}
			if got.Type != types.MergePatchType {
				t.Errorf("the patch is of type %s", got.Type)
			}
			if diff := cmp.Diff(document(t, tc.want), document(t, string(got.Data))); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
