// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/chartpack"
)

// poll retries until done is true, and returns the last error in the end.
func poll(ctx context.Context, done func() (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 4*time.Minute, true, func(context.Context) (ok bool, _ error) {
		ok, last = done()
		return ok && last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// as returns a client of an author.
func as(user string) (client.Client, error) {
	if user == administrator {
		return hub, nil
	}
	config := build.Unlimited(running.Hub.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{testers}}
	return client.New(config, client.Options{Scheme: hub.Scheme(), Mapper: hub.RESTMapper()})
}

// try does something as an author, and returns whether the hub accepted it. Only a rejection is none.
func (a *attempt) try(ctx context.Context, user, what string, do func(client.Client) error) (bool, error) {
	c, err := as(user)
	if err != nil {
		return false, err
	}
	var rejected error
	err = poll(ctx, func() (bool, error) {
		rejected = nil
		err := do(c)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			rejected, err = err, nil
		}
		return true, err
	})
	a.log = append(a.log, fmt.Sprintf("%s as %s: %v", what, user, errors.Join(rejected, err)))
	return rejected == nil, err
}

// prepare creates what the hub and the member have before the attempt.
func (a *attempt) prepare(ctx context.Context) error {
	for _, name := range []string{a.name("x"), a.name("y")} {
		if err := hub.Create(ctx, build.Namespace(name, "rights", "yes")); err != nil {
			return err
		}
		if err := member.Create(ctx, build.Namespace(name)); err != nil {
			return err
		}
	}
	for _, o := range a.onHub {
		if err := createOnHub(ctx, o); err != nil {
			return err
		}
	}
	for i, g := range a.rights {
		if err := g.create(ctx, fmt.Sprintf("%s-right-%d", a.prefix, i)); err != nil {
			return err
		}
	}
	if a.entrance == viaUpdateRun {
		return a.prepareRun(ctx)
	}
	if a.entrance != viaSet {
		return nil
	}
	if a.bound {
		if err := hub.Create(ctx, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(a.name("x"), "all"),
			Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "all"}}); err != nil {
			return err
		}
	}
	placement := &ocmclusterv1beta1.Placement{ObjectMeta: build.In(a.name("x"), "p")}
	placement.Annotations = map[string]string{ocmclusterv1beta1.DisableAnnotation: "true"}
	if err := hub.Create(ctx, placement); err != nil {
		return err
	}
	decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In(a.name("x"), "p-decision-1")}
	decision.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: "p"}
	if err := hub.Create(ctx, decision); err != nil {
		return err
	}
	decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{{ClusterName: memberName}}
	return hub.Status().Update(ctx, decision)
}

// prepareRun has the administrator place a namespace, and take a snapshot of it that is not rolled out.
func (a *attempt) prepareRun(ctx context.Context) error {
	crp := a.clusterPlacement()
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: a.name("x")}}
	if err := hub.Create(ctx, crp); err != nil {
		return err
	}
	first := a.run("first", placementv1beta1.UpdateRunInitialize)
	if err := hub.Create(ctx, first); err != nil {
		return err
	}
	if err := poll(ctx, func() (bool, error) {
		err := hub.Get(ctx, client.ObjectKeyFromObject(first), first)
		return meta.IsStatusConditionTrue(first.Status.Conditions, placementv1beta1.ConditionUpdateRunInitialized), err
	}); err != nil {
		return fmt.Errorf("waiting for a run of the administrator: %w, %+v", err, first.Status.Conditions)
	}
	return hub.Delete(ctx, first)
}

func (a *attempt) run(name string, state placementv1beta1.UpdateRunState) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: build.Named(a.name(name)), Spec: placementv1beta1.UpdateRunSpec{
		PlacementName: a.name("p"), StagedRolloutStrategyName: "all", State: state}}
}

func (a *attempt) clusterPlacement() *placementv1beta1.ClusterResourcePlacement {
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: build.Named(a.name("p"))}
	crp.Spec.ResourceSelectors = a.terms
	if a.entrance == viaUpdateRun {
		crp.Spec.Strategy.Type = placementv1beta1.ExternalStrategy
	}
	return crp
}

// placement returns the placement, nil for a set.
func (a *attempt) placement() placementv1beta1.PlacementObject {
	switch {
	case a.entrance == viaSet:
		return nil
	case a.entrance == viaResourcePlacement, a.entrance == viaEnvelope, a.entrance == viaChart && a.terms[0].Kind != "Namespace":
		return &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(a.name("x"), a.name("p")), Spec: placementv1beta1.PlacementSpec{ResourceSelectors: a.terms}}
	}
	return a.clusterPlacement()
}

// act writes everything as its authors.
func (a *attempt) act(ctx context.Context) error {
	bundled := true
	if bundle, err := a.bundleObject(); err != nil {
		return err
	} else if bundle != nil {
		if bundled, err = a.try(ctx, a.author, a.entrance, func(c client.Client) error { return c.Create(ctx, bundle) }); err != nil {
			return err
		}
	}
	if a.target != nil {
		if _, err := a.try(ctx, a.overrider, "override of "+a.target.String(), func(c client.Client) error { return c.Create(ctx, a.overriding()) }); err != nil {
			return err
		}
	}
	placed, err := a.place(ctx)
	a.accepted = bundled && placed
	if err != nil {
		return err
	}
	for _, o := range a.later {
		if err := createOnHub(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) place(ctx context.Context) (bool, error) {
	placement := a.placement()
	if placement == nil {
		return true, nil
	}
	if a.entrance != viaUpdateRun {
		return a.try(ctx, a.placer, fmt.Sprintf("placement of %v", a.terms), func(c client.Client) error { return c.Create(ctx, placement) })
	}
	changed, err := a.try(ctx, a.placer, fmt.Sprintf("placement of %v", a.terms), func(c client.Client) error {
		crp := &placementv1beta1.ClusterResourcePlacement{}
		if err := c.Get(ctx, client.ObjectKey{Name: placement.GetName()}, crp); err != nil {
			return err
		}
		crp.Spec.ResourceSelectors = a.terms
		crp.Spec.RevisionHistoryLimit = new(int32(5)) // The administrator may have chosen the same selectors.
		return c.Update(ctx, crp)
	})
	if err != nil {
		return false, err
	}
	runner := a.placer
	if !changed {
		a.placer = administrator // Who last changed the placement.
	}
	run := a.run("run", placementv1beta1.UpdateRunRun)
	if a.earlier {
		run.Spec.ResourceSnapshotIndex = "0"
	}
	a.started, err = a.try(ctx, runner, "run", func(c client.Client) error { return c.Create(ctx, run) })
	return changed, err
}

// bundleObject returns the envelope, the chart or the set; nil for a placement alone.
func (a *attempt) bundleObject() (client.Object, error) {
	data, manifests := map[string]placementv1beta1.EnvelopedObject{}, []workv1.Manifest{}
	for i, o := range a.entries {
		from := fromEnvelope
		if a.entrance == viaSet {
			from = fromSet
		}
		raw, err := o.manifest(from).MarshalJSON()
		if err != nil {
			return nil, err
		}
		data[fmt.Sprintf("entry-%d", i)] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{Raw: raw}}
		manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	switch a.entrance {
	case viaEnvelope:
		return &placementv1beta1.ResourceEnvelope{ObjectMeta: build.In(a.bundle.namespace, a.bundle.name), Data: data}, nil
	case viaClusterEnvelope:
		return &placementv1beta1.ClusterResourceEnvelope{ObjectMeta: build.Named(a.bundle.name), Data: data}, nil
	case viaChart:
		return a.chart()
	case viaSet:
		return a.set(manifests), nil
	}
	return nil, nil
}

func (a *attempt) set(manifests []workv1.Manifest) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: build.In(a.name("x"), a.name("set"))}
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "p", RolloutStrategy: clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.RolloutAll, All: &clusterv1alpha1.RolloutAllConfig{}}}}
	set.Spec.ManifestWorkTemplate.Workload.Manifests = manifests
	if a.executed {
		set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "default", Name: executor}}}
	}
	return set
}

// chart returns a chart with the entries, whose value by says who wrote the values.
func (a *attempt) chart() (*corev1.ConfigMap, error) {
	files := map[string]string{"values.yaml": "by: " + fromChart + "\n"}
	for i, o := range a.entries {
		manifest := o.manifest("{{ .Values.by }}")
		text, err := json.Marshal(manifest.Object)
		if err != nil {
			return nil, err
		}
		files[fmt.Sprintf("templates/%d.yaml", i)] = string(text)
	}
	packed, err := chartpack.Files(files)
	if err != nil {
		return nil, err
	}
	config := build.ConfigMap(a.bundle.namespace, a.bundle.name, "values.yaml", "by: "+fromChart)
	config.Annotations = map[string]string{placementv1beta1.HelmChartAnnotation: "release"}
	config.BinaryData = map[string][]byte{"chart.tgz": packed}
	return config, nil
}

// overriding returns the override of the target.
func (a *attempt) overriding() client.Object {
	add := func(path, value string) placementv1beta1.JSONPatchOverride {
		return placementv1beta1.JSONPatchOverride{Operator: placementv1beta1.JSONPatchAdd, Path: path, Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", value)}}
	}
	patches := []placementv1beta1.JSONPatchOverride{add("/metadata/labels/"+overridden, "yes")}
	switch {
	case a.bundle.name != "" && *a.target == a.bundle:
		patches = []placementv1beta1.JSONPatchOverride{add("/data/values.yaml", "by: "+fromOverride)}
	case a.target.isBinding():
		patches = append(patches, add("/roleRef/name", "edit"))
	}
	everyMember := &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{}}}}
	policy := &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{ClusterSelector: everyMember, JSONPatchOverrides: patches}}}
	k := a.target.kind
	if a.target.namespace != "" {
		return &placementv1beta1.ResourceOverride{ObjectMeta: build.In(a.target.namespace, a.name("override")), Spec: placementv1beta1.ResourceOverrideSpec{
			Policy:            policy,
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: k.Group, Version: k.Version, Kind: k.Kind, Name: a.target.name}}}}
	}
	return &placementv1beta1.ClusterResourceOverride{ObjectMeta: build.Named(a.name("override")), Spec: placementv1beta1.ClusterResourceOverrideSpec{
		Policy:                   policy,
		ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Group: k.Group, Version: k.Version, Kind: k.Kind, Name: a.target.name}}}}
}
