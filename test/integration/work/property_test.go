// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// Whatever sequence of manifests a Work had: each field of the last manifest has on the member the
// value that it has in a newly created object, and no value of an earlier manifest is left. Defaults
// that the API server set for an earlier manifest may stay, as with kubectl.
var _ = Describe("Random sequences of manifests", func() {
	// FLEETGATE_SEED repeats a failure of the longer spec.
	It("end with what the last manifest says", func(ctx SpecContext) {
		runSequences(ctx, expect.Seed(1), 8)
	})

	It("end with what the last manifest says, with other seeds and for longer", Label("matrix"), func(ctx SpecContext) {
		for ended := time.Now().Add(10 * time.Minute); time.Now().Before(ended); {
			runSequences(ctx, rand.Uint64(), 8)
		}
	}, SpecTimeout(30*time.Minute))
})

// runSequences runs one sequence for each kind and for each strategy to begin with.
func runSequences(ctx context.Context, seed uint64, steps int) {
	GinkgoHelper()
	By(fmt.Sprintf("seed %d", seed))
	namespace := expect.FreshNamespace(ctx, memberClient)
	createWork(ctx, "widgets-"+namespace, nil, strings.ReplaceAll(widgetDefinition, "$ns", namespace))
	Eventually(reportedOf(ctx, "widgets-"+namespace)).Should(HaveExactElements(HaveField("Applied", "True/Applied")))
	widgets := schema.GroupKind{Group: namespace + ".sequences.example.org", Kind: "Widget"}
	Eventually(func() error { // An API server lists a kind in its discovery some time after the definition is stored.
		_, err := memberClient.RESTMapper().RESTMapping(widgets, "v1")
		return err
	}).Should(Succeed())
	var group errgroup.Group
	for i, s := range subjects() {
		for j, strategy := range []placementv1beta1.ApplyStrategyType{placementv1beta1.ClientSideApply, placementv1beta1.ServerSideApply} {
			q := &sequence{subject: s, random: rand.New(rand.NewPCG(seed, uint64(2*i+j))), strategy: strategy, namespace: namespace, earlier: map[string]bool{},
				name: fmt.Sprintf("%s-%s-%d", s.name, namespace, j)}
			DeferCleanup(func(ctx SpecContext) { removeWork(ctx, q.name) })
			group.Go(func() error {
				if err := q.run(ctx, steps); err != nil {
					return fmt.Errorf("seed %d, %s: %w\nsteps:\n%s", seed, q.name, err, strings.Join(q.log, "\n"))
				}
				return nil
			})
		}
	}
	Expect(group.Wait()).To(Succeed())
}

// sequence is one object and the manifests that it had.
type sequence struct {
	subject
	random          *rand.Rand
	strategy        placementv1beta1.ApplyStrategyType
	name, namespace string
	log             []string
	// earlier are the fields and values of the manifests before the last.
	earlier map[string]bool
}

func (q *sequence) run(ctx context.Context, steps int) error {
	for range steps {
		if q.random.IntN(5) == 0 {
			q.strategy = map[placementv1beta1.ApplyStrategyType]placementv1beta1.ApplyStrategyType{
				placementv1beta1.ClientSideApply: placementv1beta1.ServerSideApply, placementv1beta1.ServerSideApply: placementv1beta1.ClientSideApply,
			}[q.strategy]
		}
		manifest, err := q.acceptable(ctx)
		if err != nil {
			return err
		}
		text, err := manifest.MarshalJSON()
		if err != nil {
			return err
		}
		q.log = append(q.log, fmt.Sprintf("%s: %.3000s", q.strategy, text))
		if err := q.deliver(ctx, manifest); err != nil {
			return err
		}
		if err := q.compare(ctx, manifest); err != nil {
			return err
		}
		if q.random.IntN(3) == 0 {
			if err := q.disturb(ctx, manifest); err != nil {
				return err
			}
			// With server-side apply, a field that the manifest drops before its change was reverted is the other client's.
			if err := q.compare(ctx, manifest); err != nil {
				return err
			}
		}
		remember(q.earlier, "", q.intent(manifest))
	}
	return nil
}

// acceptable is a random manifest that the API server does not refuse: server-side apply accepts no
// list with duplicate keys.
func (q *sequence) acceptable(ctx context.Context) (*unstructured.Unstructured, error) {
	for {
		manifest, err := q.next(q.random, q.namespace)
		if err != nil {
			return nil, err
		}
		manifest.SetName(q.name)
		namespaced, err := memberClient.IsObjectNamespaced(manifest)
		if err != nil {
			return nil, err
		}
		if namespaced {
			manifest.SetNamespace(q.namespace)
		}
		if q.fromHub {
			if manifest, err = q.asOnHub(ctx, manifest); err != nil {
				return nil, err
			}
		}
		if q.strategy != placementv1beta1.ServerSideApply {
			return manifest, nil
		}
		fresh := manifest.DeepCopy()
		fresh.SetName(q.name + "-new")
		err = memberClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(fresh), client.FieldOwner("somebody"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "duplicate entries for key") {
			return manifest, err
		}
	}
}

// asOnHub is a manifest as a placement selects it: with the defaults of the hub's API server.
func (q *sequence) asOnHub(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fresh := manifest.DeepCopy()
	fresh.SetName(q.name + "-new")
	if err := memberClient.Create(ctx, fresh, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the manifest is invalid: %w", err)
	}
	selected := &unstructured.Unstructured{Object: q.intent(fresh)}
	selected.Object["metadata"] = manifest.Object["metadata"]
	return selected, nil
}

// deliver writes the manifest into the Work.
func (q *sequence) deliver(ctx context.Context, manifest *unstructured.Unstructured) error {
	spec := placementv1beta1.WorkSpec{
		ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: q.strategy},
		Workload:      placementv1beta1.WorkloadTemplate{Manifests: []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Object: manifest}}}},
	}
	if q.strategy == placementv1beta1.ServerSideApply {
		spec.ApplyStrategy.ServerSideApplyConfig = &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}
	}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: q.name}}
	return poll(ctx, func() error {
		err := hubClient.Get(ctx, client.ObjectKeyFromObject(work), work)
		work.Spec = spec
		if err != nil {
			return hubClient.Create(ctx, work)
		}
		return hubClient.Update(ctx, work)
	})
}

// compare waits until the Work says that the manifest is applied, and the object is as a new one.
func (q *sequence) compare(ctx context.Context, manifest *unstructured.Unstructured) error {
	fresh := manifest.DeepCopy()
	fresh.SetName(q.name + "-new")
	if err := memberClient.Create(ctx, fresh, client.DryRunAll); err != nil {
		return fmt.Errorf("the manifest is invalid: %w", err)
	}
	return poll(ctx, func() error {
		work := &placementv1beta1.Work{}
		if err := hubClient.Get(ctx, workKey(q.name), work); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionApplied)
		if applied == nil || applied.ObservedGeneration != work.Generation || applied.Status != metav1.ConditionTrue {
			return fmt.Errorf("generation %d is not applied: %+v", work.Generation, work.Status.ManifestConditions)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(manifest.GroupVersionKind())
		if err := memberClient.Get(ctx, client.ObjectKeyFromObject(manifest), live); err != nil {
			return err
		}
		if found := q.violations("", q.intent(fresh), q.intent(live), q.intent(manifest)); len(found) > 0 {
			return fmt.Errorf("the object differs from a new one:\n%.4000s", strings.Join(found, "\n"))
		}
		return nil
	})
}

// intent is what authors decide: all fields but those that the API server and controllers assign.
func (q *sequence) intent(object *unstructured.Unstructured) map[string]any {
	all := object.DeepCopy().Object
	delete(all, "status")
	delete(all, "metadata")
	for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(all, "spec", field)
	}
	// The API server moves them into data.
	if texts, found, err := unstructured.NestedStringMap(all, "stringData"); found && err == nil {
		for key, text := range texts {
			_ = unstructured.SetNestedField(all, base64.StdEncoding.EncodeToString([]byte(text)), "data", key) // data is a map.
		}
		delete(all, "stringData")
	}
	if ports, found, err := unstructured.NestedSlice(all, "spec", "ports"); found && err == nil {
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(all, ports, "spec", "ports") // It was there.
	}
	labels := map[string]any{}
	for kind, of := range map[string]map[string]string{"label ": object.GetLabels(), "annotation ": object.GetAnnotations()} {
		for key, value := range of {
			if strings.HasPrefix(key, "author/") {
				labels[kind+key] = value
			}
		}
	}
	all["metadata"] = labels
	return all
}

// violations compares fields of the object with those of a new one, and with what the manifest says
// of them; nil if it does not.
func (q *sequence) violations(path string, fresh, live, manifest any) []string {
	if equality.Semantic.DeepEqual(fresh, live) {
		return nil
	}
	var found []string
	newFields, is := fresh.(map[string]any)
	fields, are := live.(map[string]any)
	said, _ := manifest.(map[string]any)
	newItems, isList := fresh.([]any)
	items, areList := live.([]any)
	saidItems, _ := manifest.([]any)
	switch {
	case is && are:
		for key := range maps.Keys(fields) {
			found = append(found, q.violations(path+"/"+key, newFields[key], fields[key], said[key])...)
		}
		for key := range maps.Keys(newFields) {
			if _, there := fields[key]; !there {
				found = append(found, q.violations(path+"/"+key, newFields[key], nil, said[key])...)
			}
		}
	case isList && areList && len(newItems) == len(items):
		for i := range items {
			var of any
			if i < len(saidItems) {
				of = saidItems[i]
			}
			found = append(found, q.violations(fmt.Sprintf("%s/%d", path, i), newItems[i], items[i], of)...)
		}
	case manifest != nil:
		found = append(found, fmt.Sprintf("%s is %v, want %v", path, live, fresh))
	default:
		left := map[string]bool{}
		remember(left, path, live)
		for value := range left {
			if q.earlier[value] {
				found = append(found, value+" is left of an earlier manifest")
			}
		}
	}
	return found
}

// remember adds the single values below a field.
func remember(to map[string]bool, path string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for key, of := range value {
			remember(to, path+"/"+key, of)
		}
	case []any:
		for i, of := range value {
			remember(to, fmt.Sprintf("%s/%d", path, i), of)
		}
	default:
		to[fmt.Sprintf("%s = %.100v", path, value)] = true
	}
}

// disturb changes, as another client of the member, what the manifest sets, and adds something.
func (q *sequence) disturb(ctx context.Context, manifest *unstructured.Unstructured) error {
	patch := `{"metadata":{"annotations":{"theirs":"1","author/always":"theirs"}}}`
	if data, found, _ := unstructured.NestedMap(manifest.Object, "data"); found && manifest.GetKind() == "ConfigMap" {
		for key := range data {
			patch = fmt.Sprintf(`{"metadata":{"annotations":{"author/always":null}},"data":{%q:"theirs"}}`, key)
		}
	}
	q.log = append(q.log, "another client: "+patch)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(manifest.GroupVersionKind())
	object.SetName(q.name)
	object.SetNamespace(manifest.GetNamespace())
	return poll(ctx, func() error {
		return memberClient.Patch(ctx, object, expect.MergePatch(patch), client.FieldOwner("somebody"))
	})
}

// poll retries until there is no error, and returns the last one in the end.
func poll(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 90*time.Second, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// subject is a kind, and what its manifests consist of: a base, and one part of each choice, or
// none of it.
type subject struct {
	name, base string
	// fromHub is set for kinds with fields that exclude each other and have defaults. Manifests
	// without these defaults, as in envelopes, change them only with client-side apply.
	fromHub bool
	choices [][]string
}

// next is a random manifest. A part that begins with ! is a text that replaces an empty part.
func (s subject) next(random *rand.Rand, namespace string) (*unstructured.Unstructured, error) {
	manifest := map[string]any{}
	base := strings.ReplaceAll(s.base, "$ns", namespace)
	parts := []string{base, "metadata: {annotations: {author/always: ours}}"}
	for _, choice := range slices.Concat(s.choices, [][]string{{
		"metadata: {labels: {author/a: one}}", "metadata: {labels: {author/a: two, author/b: b}, annotations: {author/c: c}}",
	}}) {
		if at := random.IntN(len(choice) + 1); at < len(choice) {
			parts = append(parts, choice[at])
		}
	}
	for _, part := range parts {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(part, "$large", strings.Repeat("0123456789abcdef", 17<<10))), &fields); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		merge(manifest, fields)
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, yaml.Unmarshal(text, object)
}

// merge adds fields to those that there are; lists are replaced.
func merge(into, fields map[string]any) {
	for key, value := range fields {
		inner, isMap := value.(map[string]any)
		if before, is := into[key].(map[string]any); is && isMap {
			merge(before, inner)
			continue
		}
		into[key] = value
	}
}
