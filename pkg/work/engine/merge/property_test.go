// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

// TestThreeWay_AppliesAnySequenceOfManifests merges random manifests, one after the other, into one
// object, to which somebody else adds fields in between. The object has to be the last manifest
// and those fields, and nothing of an earlier manifest.
func TestThreeWay_AppliesAnySequenceOfManifests(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		sequence := kinds[int(seed)%len(kinds)]
		t.Run(fmt.Sprintf("%s %d", sequence.kind.Kind, seed), func(t *testing.T) {
			original, live := map[string]any(nil), map[string]any{}
			for step := range 12 {
				manifest := sequence.next(random)
				if step == 0 {
					live = clone(t, manifest)
				} else {
					live = merged(t, sequence.kind, original, manifest, live)
				}
				want := clone(t, manifest)
				if has(live, "theirs") {
					sequence.meddle(want)
				}
				if diff := gocmp.Diff(sorted(want), sorted(live)); diff != "" {
					t.Fatalf("step %d, from %v: (-want +got)\n%s", step, original, diff)
				}
				if random.IntN(3) == 0 && !has(live, "theirs") {
					sequence.meddle(live)
				}
				original = manifest
			}
		})
	}
}

// sequences generates manifests of one kind.
type sequences struct {
	kind   schema.GroupVersionKind
	next   func(*rand.Rand) map[string]any
	meddle func(object map[string]any)
}

var kinds = []sequences{
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, someService, func(object map[string]any) {
		label(object)
		add(object, map[string]any{"name": "theirs", "port": 9999.0}, "spec", "ports")
	}},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, someDeployment, func(object map[string]any) {
		label(object)
		add(object, map[string]any{"name": "theirs", "image": "sidecar"}, "spec", "template", "spec", "containers")
	}},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, someConfigMap, label},
	{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, someWidget, label},
}

func label(object map[string]any) {
	metadata := object["metadata"].(map[string]any) //nolint:forcetypeassert // a test's own object
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels["theirs"] = "x"
}

func has(object map[string]any, key string) bool {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels[key] != nil
}

// add appends an item to an existing list.
func add(object map[string]any, item any, path ...string) {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	last := path[len(path)-1]
	list, _ := object[last].([]any)
	object[last] = append(list, item)
}

func base(random *rand.Rand) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "a", "labels": some(random, "l", 3)}}
}

// some returns a map with some of n keys and changing values.
func some(random *rand.Rand, prefix string, n int) map[string]any {
	values := map[string]any{prefix + "0": "always"}
	for i := range n {
		if random.IntN(2) == 0 {
			values[fmt.Sprint(prefix, i)] = fmt.Sprint(random.IntN(3))
		}
	}
	return values
}

func someService(random *rand.Rand) map[string]any {
	object := base(random)
	var ports []any
	for i := range 1 + random.IntN(4) {
		port := map[string]any{"name": fmt.Sprint("p", i), "port": float64(53 + i/2), "protocol": []string{"TCP", "UDP"}[i%2]}
		if random.IntN(2) == 0 {
			port["targetPort"] = float64(5000 + random.IntN(3))
		}
		ports = append(ports, port)
	}
	random.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
	object["spec"] = map[string]any{"ports": ports, "selector": some(random, "s", 2)}
	return object
}

func someDeployment(random *rand.Rand) map[string]any {
	object := base(random)
	var containers []any
	for i := range 1 + random.IntN(3) {
		var env []any
		for range random.IntN(4) {
			env = append(env, map[string]any{"name": fmt.Sprint("E", random.IntN(3)), "value": fmt.Sprint(random.IntN(3))})
		}
		container := map[string]any{"name": fmt.Sprint("c", i), "image": fmt.Sprint("i", random.IntN(3))}
		if len(env) > 0 {
			container["env"] = env
		}
		if random.IntN(2) == 0 {
			container["args"] = []any{fmt.Sprint(random.IntN(3)), "x"}
		}
		containers = append(containers, container)
	}
	object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
	return object
}

func someConfigMap(random *rand.Rand) map[string]any {
	object := base(random)
	object["data"] = some(random, "d", 6)
	return object
}

func someWidget(random *rand.Rand) map[string]any {
	object := base(random)
	object["spec"] = map[string]any{"a": some(random, "a", 3), "list": []any{some(random, "i", 2), some(random, "i", 2)}}
	return object
}

// merged returns the object after an API server applied the patch.
func merged(t *testing.T, kind schema.GroupVersionKind, original, manifest, live map[string]any) map[string]any {
	t.Helper()
	current := text(t, live)
	patch, err := merge.Merger{Known: scheme.Scheme}.ThreeWay(kind, text(t, original), text(t, manifest), current)
	if err != nil {
		t.Fatal(err)
	}
	after := current
	switch {
	case patch.IsEmpty():
	case patch.Type == types.MergePatchType:
		after, err = jsonpatch.MergePatch(current, patch.Data)
	default:
		var typed runtime.Object
		if typed, err = scheme.Scheme.New(kind); err == nil {
			after, err = strategicpatch.StrategicMergePatch(current, patch.Data, typed)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]any{}
	if err := json.Unmarshal(after, &result); err != nil {
		t.Fatal(err)
	}
	metadata, _ := result["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	return result
}

func text(t *testing.T, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func clone(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	cloned := map[string]any{}
	if err := json.Unmarshal(text(t, object), &cloned); err != nil {
		t.Fatal(err)
	}
	return cloned
}

// sorted sorts named items, because the position of other clients' items varies.
func sorted(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = sorted(value[key])
		}
	case []any:
		for place := range value {
			value[place] = sorted(value[place])
		}
		slices.SortStableFunc(value, func(a, b any) int { return cmp.Compare(name(a), name(b)) })
	}
	return value
}

func name(item any) string {
	fields, _ := item.(map[string]any)
	named, _ := fields["name"].(string)
	return named
}
