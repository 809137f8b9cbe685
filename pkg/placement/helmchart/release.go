// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/override"
)

// The keys of a ConfigMap or Secret that describes a chart.
const (
	// KeyPackage is the chart itself, as helm package writes it.
	KeyPackage = "chart.tgz"
	// KeyChart is where to fetch the chart instead, KeyVersion its version, and KeyDigest, which is
	// optional, its digest there.
	KeyChart   = "chart"
	KeyVersion = "version"
	KeyDigest  = "digest"
	// KeyNamespace is the namespace of the release. If unset, it is that of the object.
	KeyNamespace = "namespace"
	// KeyValues are values for the chart, in YAML. Strings may contain the variables of overrides.
	KeyValues = "values.yaml"
	// KeyValuesTemplate is a template of YAML with the values so far as .Values. Its result
	// overrides them.
	KeyValuesTemplate = "values.tpl"
)

// maxReleaseName is Helm's limit for the name of a release.
const maxReleaseName = 53

// Release is everything that the rendering of a chart for one member depends on.
type Release struct {
	// Name and Namespace are .Release.Name and .Release.Namespace in templates.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Package is the chart, as helm package writes it.
	Package []byte `json:"package,omitempty"`
	// Source is where to fetch the chart, nil if Package has it.
	Source *Source `json:"source,omitempty"`
	// Values is a JSON object, or empty.
	Values json.RawMessage `json:"values,omitempty"`
	// ValuesTemplate is the template of further values.
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	Member         Member `json:"member"`
	// KubernetesVersion is that of the member, or empty if it is unknown.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Confidential keeps messages of templates, which may quote values, out of errors: the values
	// come from a Secret.
	Confidential bool `json:"confidential,omitempty"`
	// Within is the only namespace that objects may have. If empty, any is allowed, and
	// cluster-scoped objects too.
	Within string `json:"within,omitempty"`
}

// Member is .Values.global.fleetgate.member in templates.
type Member struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Properties  map[string]string `json:"properties"`
}

// memberFor leaves out a member's frequently changing fields. Charts that saw them would be
// rendered, and perhaps rolled out, as often.
func memberFor(m override.Member) Member {
	seen := Member{Name: m.Name, Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations), Properties: maps.Clone(m.Properties)}
	maps.DeleteFunc(seen.Properties, func(name, _ string) bool {
		return clusterv1beta1.PropertyName(name).IsRestless() || strings.HasPrefix(name, placementv1beta1.ResourcePropertyPrefix)
	})
	delete(seen.Annotations, corev1.LastAppliedConfigAnnotation)
	return seen
}

// MemberChanges accepts only changes of a member that charts see.
func MemberChanges() predicate.Predicate {
	return enqueue.Updates(func(before, after *clusterv1beta1.MemberCluster) bool {
		return !equality.Semantic.DeepEqual(memberFor(override.MemberOf(before)), memberFor(override.MemberOf(after)))
	})
}

// chartObject is the decoded object; its Data has the bytes for both kinds.
type chartObject struct {
	metav1.PartialObjectMetadata
	Data map[string][]byte
}

// decode matches field names exactly: an override's "Data" is not data.
func decode(raw []byte) (*chartObject, error) {
	var c chartObject
	if err := utiljson.Unmarshal(raw, &c.PartialObjectMetadata); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if c.Kind == string(placementv1beta1.SecretEnvelopeType) {
		var secret corev1.Secret
		if err := utiljson.Unmarshal(raw, &secret); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		c.Data = secret.Data
		return &c, nil
	}
	var configMap corev1.ConfigMap
	if err := utiljson.Unmarshal(raw, &configMap); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	c.Data = make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	maps.Copy(c.Data, configMap.BinaryData)
	for key, text := range configMap.Data {
		c.Data[key] = []byte(text)
	}
	return &c, nil
}

// Read creates a Release from an annotated ConfigMap or Secret, as the member gets it, for a
// placement in a namespace, or for a cluster-scoped one. An error tells the author of the object
// what to change.
func Read(raw []byte, m override.Member, placementNamespace string) (*Release, error) {
	c, err := decode(raw)
	if err != nil {
		return nil, err
	}
	r := &Release{
		Name: c.Annotations[placementv1beta1.HelmChartAnnotation], Namespace: c.Namespace, Within: placementNamespace,
		Package: c.Data[KeyPackage], Source: sourceOf(c.Data), ValuesTemplate: string(c.Data[KeyValuesTemplate]),
		Member: memberFor(m), KubernetesVersion: m.Properties[string(clusterv1beta1.PropertyKubernetesVersion)],
		Confidential: c.Kind == string(placementv1beta1.SecretEnvelopeType),
	}
	if namespace, ok := c.Data[KeyNamespace]; ok {
		r.Namespace = strings.TrimSpace(string(namespace))
	}
	if err := r.validate(c); err != nil {
		return nil, err
	}
	if values := c.Data[KeyValues]; len(values) > 0 {
		read, err := valuesOf(values)
		if err != nil && r.Confidential {
			err = errWithheld // It may quote the value.
		}
		if err == nil && read != nil {
			read, err = override.Expand(read, m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", KeyValues, err)
		}
		r.Values = read
	}
	return r, nil
}

func (r *Release) validate(c *chartObject) error {
	known := []string{KeyPackage, KeyChart, KeyVersion, KeyDigest, KeyNamespace, KeyValues, KeyValuesTemplate}
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("key %q means nothing: a chart is described by %s", key, strings.Join(known, ", "))
		}
	}
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 || len(r.Name) > maxReleaseName {
		return fmt.Errorf("annotation %s: %q is no name of a release, which is a DNS name of at most %d characters", placementv1beta1.HelmChartAnnotation, r.Name, maxReleaseName)
	}
	if problems := validation.IsDNS1123Label(r.Namespace); len(problems) > 0 {
		return fmt.Errorf("%s: %q: %s", KeyNamespace, r.Namespace, strings.Join(problems, ", "))
	}
	if r.Within != "" && r.Namespace != r.Within {
		return fmt.Errorf("%s: %q: a ResourcePlacement places into its own namespace only, which is %q", KeyNamespace, r.Namespace, r.Within)
	}
	switch {
	case r.Source != nil && len(r.Package) > 0:
		return fmt.Errorf("keys %s and %s are both there: which of them is the chart", KeyPackage, KeyChart)
	case r.Source != nil:
		return r.Source.validate()
	case len(r.Package) == 0:
		return fmt.Errorf("key %s is missing: it holds the chart as helm package writes it; or %s and %s, for one in a registry", KeyPackage, KeyChart, KeyVersion)
	}
	return nil
}

// errWithheld replaces an error about confidential values.
var errWithheld = errors.New("it is invalid; the details are withheld because the value comes from a Secret")

// valuesOf decodes values, nil if there are none. Variables are filled in afterwards, so that a
// member's own data always remains a string.
func valuesOf(text []byte) (json.RawMessage, error) {
	raw, err := untrusted.ToJSON(text, untrusted.Object)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(raw), "{") {
		if string(raw) == "null" {
			return nil, nil // Nothing but comments.
		}
		return nil, errors.New("it is not a map of values")
	}
	return raw, nil
}

// Hash identifies a Release.
func (r *Release) Hash() (string, error) { return hash.JSON(r) }

// MemberHash identifies what a chart sees of the member.
func (r *Release) MemberHash() (string, error) {
	return hash.JSON(&Release{Member: r.Member, KubernetesVersion: r.KubernetesVersion})
}

// ChartHash identifies a chart with its values, independently of the member.
func (r *Release) ChartHash() (string, error) {
	chart := *r
	chart.Member, chart.KubernetesVersion = Member{}, ""
	return hash.JSON(&chart)
}

// ValuesOnly returns an error if overrides changed an object so that it describes another chart.
// The permission to override does not include the choice of what is rendered, which requires
// RenderVerb.
func ValuesOnly(before, after []byte) error {
	was, err := decode(before)
	if err != nil {
		return err
	}
	is, err := decode(after)
	if err != nil {
		return err
	}
	key := placementv1beta1.HelmChartAnnotation
	if was.Annotations[key] != is.Annotations[key] {
		return fmt.Errorf("the overrides change annotation %s: of a chart they may change %s only", key, KeyValues)
	}
	for _, c := range []*chartObject{was, is} {
		delete(c.Data, KeyValues)
	}
	if !maps.EqualFunc(was.Data, is.Data, slices.Equal[[]byte]) {
		return fmt.Errorf("the overrides change more of a chart than %s", KeyValues)
	}
	return nil
}
