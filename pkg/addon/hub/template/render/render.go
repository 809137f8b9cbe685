// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// mostBytes limits the manifests of a ManifestWork, as its webhook does.
	mostBytes = 500 << 10
	// The others limit all manifests of a template, its registrations, the containers of all its workloads,
	// and a configuration in JSON without certificates: each container gets a copy of parts of it.
	mostTotal         = 4 * mostBytes
	mostManifests     = 500
	mostRegistrations = 20
	mostContainers    = 100
	mostConfigBytes   = 64 << 10
)

// Inputs are what an add-on of a cluster is rendered from. None of them is changed.
type Inputs struct {
	AddOn, Cluster string
	// Mirrors is the value of the ManagedCluster's annotation about registries.
	Mirrors  string
	Template *addonv1alpha1.AddOnTemplate
	// Config is nil if the add-on has none.
	Config *addonv1alpha1.AddOnDeploymentConfigSpec
}

// Rendered is an add-on of a cluster.
type Rendered struct {
	// Namespace is that of the add-on's agent.
	Namespace string
	// Deploy is what runs on the cluster, which [Divide] divides, Hook what runs before that is deleted.
	// Either may have no manifests.
	Deploy, Hook workv1.ManifestWorkSpec
	// Probes are the workloads whose state is that of the add-on.
	Probes []workv1.ResourceIdentifier
}

// manifest is an object with its JSON.
type manifest struct {
	object *unstructured.Unstructured
	raw    []byte
}

// Render renders an add-on. The error is a refusal.
func Render(in Inputs) (*Rendered, error) {
	if err := check(in); err != nil {
		return nil, err
	}
	values := valuesOf(in)
	var objects []*unstructured.Unstructured
	read, written, containers := mostTotal, mostTotal, 0
	for i, template := range in.Template.Spec.AgentSpec.Workload.Manifests {
		object, err := decode(template.Raw, values, &read)
		if err != nil {
			return nil, refuse("manifest %d: %w", i, err)
		}
		objects = append(objects, object)
	}
	out := &Rendered{Namespace: namespaceOf(in, objects)}
	mirrors, err := mirrorsOf(in)
	if err != nil {
		return nil, err
	}
	d := decoration{in: in, values: values, namespace: out.Namespace, mirrors: mirrors, containers: &containers}
	manifests := make([]manifest, 0, len(objects)+1)
	for i, object := range append(objects, d.authorities()...) {
		raw, err := d.encode(object, &written)
		if err != nil {
			return nil, refuse("manifest %d, %s %s: %w", i, object.GetKind(), object.GetName(), err)
		}
		if len(raw) > mostBytes {
			return nil, refuse("manifest %d, %s %s: it has more than %d bytes", i, object.GetKind(), object.GetName(), mostBytes)
		}
		manifests = append(manifests, manifest{object: object, raw: raw})
	}
	out.deliver(in.Template, manifests)
	if sizeOf(out.Hook) > mostBytes {
		return nil, refuse("the manifests for before the deletion have more than %d bytes", mostBytes)
	}
	return out, nil
}

// check limits what is rendered, before it is.
func check(in Inputs) error {
	spec := &in.Template.Spec
	if n := len(spec.AgentSpec.Workload.Manifests); n > mostManifests {
		return refuse("it has %d manifests, the limit is %d", n, mostManifests)
	}
	if n := len(spec.Registration); n > mostRegistrations {
		return refuse("it has %d registrations, the limit is %d", n, mostRegistrations)
	}
	if in.Config == nil {
		return nil
	}
	config := in.Config.DeepCopy()
	config.ProxyConfig.CABundle = nil
	text, err := json.Marshal(config)
	if err != nil {
		return refuse("the AddOnDeploymentConfig is invalid: %w", err)
	}
	if len(text) > mostConfigBytes {
		return refuse("the AddOnDeploymentConfig has %d bytes without proxyConfig.caBundle, the limit is %d", len(text), mostConfigBytes)
	}
	return nil
}

func refuse(format string, args ...any) *refusal.Refusal {
	return refusal.New(addonv1alpha1.ReasonManifestWorkApplyFailed, format, args...)
}

// decode parses a manifest and replaces the variables in its texts.
func decode(raw []byte, values map[string]string, budget *int) (*unstructured.Unstructured, error) {
	if *budget -= len(raw); *budget < 0 {
		return nil, errTooLarge()
	}
	var checked json.RawMessage
	if err := untrusted.UnmarshalJSON(raw, untrusted.Object, &checked); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(checked, &fields); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	replaced, err := (&replacement{values: values, budget: budget}).in(fields)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: replaced.(map[string]any)}
	if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
		return nil, errors.New("it has no apiVersion, kind or metadata.name")
	}
	return object, replicasAsNumber(object)
}

func errTooLarge() error {
	return fmt.Errorf("the manifests have more than %d bytes: use several add-ons", mostTotal)
}

// namespaceOf is the namespace of the agent: the configured one, that of the first Deployment, that of
// the first DaemonSet, or the default one.
func namespaceOf(in Inputs, objects []*unstructured.Unstructured) string {
	if in.Config != nil && in.Config.AgentInstallNamespace != "" {
		return in.Config.AgentInstallNamespace
	}
	first := map[string]string{}
	for _, object := range objects {
		if resource := workloadOf(object); first[resource] == "" {
			first[resource] = object.GetNamespace()
		}
	}
	return cmp.Or(first[deployments], first[daemonSets], addonv1alpha1.DefaultInstallNamespace)
}

// deliver separates what runs on the cluster from what runs before that is deleted.
func (r *Rendered) deliver(template *addonv1alpha1.AddOnTemplate, manifests []manifest) {
	agent := template.Spec.AgentSpec.DeepCopy()
	r.Deploy = workv1.ManifestWorkSpec{DeleteOption: agent.DeleteOption, Executor: agent.Executor}
	r.Hook = workv1.ManifestWorkSpec{Executor: agent.Executor}
	var orphans []workv1.OrphaningRule
	namespaces := map[string]bool{}
	for _, m := range manifests {
		id := identify(m.object)
		if id.Group == "" && id.Resource == "namespaces" {
			if namespaces[id.Name] {
				continue // Several have become the one of the agent.
			}
			namespaces[id.Name] = true
		}
		to := &r.Deploy
		switch resource := workloadOf(m.object); {
		case isHook(m.object):
			to = &r.Hook
			to.ManifestConfigs = append(to.ManifestConfigs, feedback(id))
		case resource != "":
			to.ManifestConfigs = append(to.ManifestConfigs, feedback(id))
			if replicas, found, _ := unstructured.NestedInt64(m.object.Object, "spec", "replicas"); !found || replicas != 0 {
				r.Probes = append(r.Probes, id)
			}
		}
		if _, orphan := m.object.GetAnnotations()[addonv1alpha1.OrphanAnnotation]; orphan && to == &r.Deploy {
			orphans = append(orphans, workv1.OrphaningRule{Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name})
		}
		content := workv1.Manifest{}
		content.Raw = m.raw
		to.Workload.Manifests = append(to.Workload.Manifests, content)
	}
	if len(orphans) > 0 {
		r.Deploy.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: orphans},
		}
	}
	r.Deploy.ManifestConfigs = mergeConfigs(r.Deploy.ManifestConfigs, agent.ManifestConfigs)
}

// identify names an object with the plural of its kind, guessed as Kubernetes does without discovery.
func identify(object *unstructured.Unstructured) workv1.ResourceIdentifier {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return workv1.ResourceIdentifier{Group: plural.Group, Resource: plural.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// isHook reports whether an object is to run before the add-on is deleted.
func isHook(object *unstructured.Unstructured) bool {
	if kind := object.GetKind(); kind != "Job" && kind != "Pod" {
		return false
	}
	_, label := object.GetLabels()[addonv1alpha1.PreDeleteLabel]
	_, annotation := object.GetAnnotations()[addonv1alpha1.PreDeleteAnnotation]
	_, sameLabel := object.GetLabels()[addonv1alpha1.PreDeleteAnnotation]
	return label || sameLabel || annotation
}

// feedback asks for the state of a workload. The scrape type is the default, which the API adds.
func feedback(of workv1.ResourceIdentifier) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: of, FeedbackRules: []workv1.FeedbackRule{{Type: workv1.FeedbackWellKnownStatus}}, FeedbackScrapeType: workv1.FeedbackPoll,
	}
}

// mergeConfigs adds the configurations of a template to our own.
func mergeConfigs(own, template []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	for _, add := range template {
		i := slices.IndexFunc(own, func(has workv1.ManifestConfigOption) bool { return has.ResourceIdentifier == add.ResourceIdentifier })
		if i < 0 {
			own = append(own, add)
			continue
		}
		for _, rule := range add.FeedbackRules {
			if rule.Type != workv1.FeedbackWellKnownStatus {
				own[i].FeedbackRules = append(own[i].FeedbackRules, rule)
			}
		}
		own[i].UpdateStrategy, own[i].ConditionRules = add.UpdateStrategy, add.ConditionRules
		own[i].FeedbackScrapeType = cmp.Or(add.FeedbackScrapeType, own[i].FeedbackScrapeType)
	}
	return own
}
