// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/override"
)

func west() override.Member {
	return override.Member{
		Name: "west-1", Labels: map[string]string{"region": "west"},
		Annotations: map[string]string{"example.com/proxy": "http://proxy: {evil: true}", corev1.LastAppliedConfigAnnotation: "{}"},
		Properties: map[string]string{
			"k8s.io/k8s-version": "v1.31.2", "kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/available-cpu": "7",
			"infrastructure.fleetgate.io/pod-cidrs": "10.0.0.0/8",
		},
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "addons", Name: "c", Annotations: map[string]string{placementv1beta1.HelmChartAnnotation: name}}
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("addon"), Data: data,
		BinaryData: map[string][]byte{KeyPackage: []byte("packed")},
	}
}

func secret(data map[string][]byte) *corev1.Secret {
	data[KeyPackage] = []byte("packed")
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("addon"), Data: data}
}

func encoded(t *testing.T, object any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRead(t *testing.T) {
	member := Member{
		Name: "west-1", Labels: map[string]string{"region": "west"}, Annotations: map[string]string{"example.com/proxy": "http://proxy: {evil: true}"},
		Properties: map[string]string{"k8s.io/k8s-version": "v1.31.2", "infrastructure.fleetgate.io/pod-cidrs": "10.0.0.0/8"},
	}
	cases := map[string]struct {
		object any
		within string
		want   *Release
	}{
		"a ConfigMap": {
			object: configMap(map[string]string{KeyNamespace: "other\n", KeyValuesTemplate: "{{ x }}"}),
			want:   &Release{Name: "addon", Namespace: "other", Package: []byte("packed"), ValuesTemplate: "{{ x }}", Member: member, KubernetesVersion: "v1.31.2"},
		},
		"a Secret": {
			object: secret(map[string][]byte{KeyValues: []byte("a: 1\n")}), within: "addons",
			want: &Release{Name: "addon", Namespace: "addons", Package: []byte("packed"), Values: json.RawMessage(`{"a":1}`), Member: member,
				KubernetesVersion: "v1.31.2", Confidential: true, Within: "addons"},
		},
		"values with variables, which are texts whatever a member says": {
			object: configMap(map[string]string{KeyValues: "proxy: ${MEMBER-CLUSTER-ANNOTATION-KEY-example.com/proxy}\nname: a-${MEMBER-CLUSTER-NAME}\nbig: 12345678901234567890\n"}),
			want: &Release{Name: "addon", Namespace: "addons", Package: []byte("packed"), Member: member, KubernetesVersion: "v1.31.2",
				Values: json.RawMessage(`{"big":12345678901234567890,"name":"a-west-1","proxy":"http://proxy: {evil: true}"}`)},
		},
		"values that are comments": {
			object: configMap(map[string]string{KeyValues: "# nothing\n"}),
			want:   &Release{Name: "addon", Namespace: "addons", Package: []byte("packed"), Member: member, KubernetesVersion: "v1.31.2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(encoded(t, tc.object), west(), tc.within)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("release (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead_RefusesInvalidObjects(t *testing.T) {
	named := func(name string) *corev1.ConfigMap {
		c := configMap(nil)
		c.ObjectMeta = meta(name)
		return c
	}
	from := func(chart, version, digest string) *corev1.ConfigMap {
		c := configMap(map[string]string{KeyChart: chart, KeyVersion: version, KeyDigest: digest})
		c.BinaryData = nil
		return c
	}
	empty := configMap(nil)
	empty.BinaryData = nil
	cases := map[string]struct {
		object any
		within string
		want   string
	}{
		"no chart":                    {object: empty, want: "key chart.tgz is missing"},
		"both a chart and its place":  {object: configMap(map[string]string{KeyChart: "oci://a/b", KeyVersion: "1.0.0"}), want: "are both there"},
		"a chart that is elsewhere":   {object: from("https://a/b", "1.0.0", ""), want: `"https://a/b" is no chart in a registry`},
		"a chart with its tag":        {object: from("oci://a/b:1.0.0", "1.0.0", ""), want: "is no chart in a registry"},
		"a chart without a version":   {object: from("oci://a/b", "", ""), want: "is not one version"},
		"a range of versions":         {object: from("oci://a/b", "^1.0.0", ""), want: "is not one version"},
		"a digest that is none":       {object: from("oci://a/b", "1.0.0", "sha256:1"), want: "is no digest"},
		"a version of nothing":        {object: from("", "1.0.0", ""), want: "is no chart in a registry"},
		"a key that it does not know": {object: configMap(map[string]string{"value.yaml": "a"}), want: `key "value.yaml" means nothing`},
		"no name of a release":        {object: named("No Name"), want: "is no name of a release"},
		"a long name of a release":    {object: named(strings.Repeat("a", 54)), want: "at most 53"},
		"a namespace that is none":    {object: configMap(map[string]string{KeyNamespace: "a b"}), want: "namespace: "},
		"another namespace":           {object: configMap(map[string]string{KeyNamespace: "kube-system"}), within: "addons", want: "its own namespace only"},
		"values that are a list":      {object: configMap(map[string]string{KeyValues: "[a]"}), want: "not a map"},
		"values that are no YAML":     {object: configMap(map[string]string{KeyValues: "a: ["}), want: "values.yaml: "},
		"a label that is not there":   {object: configMap(map[string]string{KeyValues: "a: ${MEMBER-CLUSTER-LABEL-KEY-zone}"}), want: `has no label "zone"`},
		"a label, in a Secret":        {object: secret(map[string][]byte{KeyValues: []byte("a: ${MEMBER-CLUSTER-LABEL-KEY-zone}")}), want: `has no label "zone"`},
		"no YAML in a Secret":         {object: secret(map[string][]byte{KeyValues: []byte("hunter2: hunter2: 1")}), want: "withheld because the value comes from a Secret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Read(encoded(t, tc.object), west(), tc.within)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error = %v quotes the Secret", err)
			}
		})
	}
}

func TestHash_DependsOnlyOnRelevantFields(t *testing.T) {
	hash := func(change func(*override.Member)) string {
		t.Helper()
		m := west()
		change(&m)
		r, err := Read(encoded(t, configMap(nil)), m, "")
		if err != nil {
			t.Fatal(err)
		}
		h, err := r.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	before := hash(func(*override.Member) {})
	if before != hash(func(m *override.Member) {
		m.Properties["kubernetes-fleet.io/node-count"], m.Properties["resources.kubernetes-fleet.io/available-cpu"] = "4", "1"
	}) {
		t.Error("a chart is rendered again whenever a node comes")
	}
	for what, change := range map[string]func(*override.Member){
		"its name": func(m *override.Member) { m.Name = "b" }, "a label": func(m *override.Member) { m.Labels["region"] = "east" },
		"its version": func(m *override.Member) { m.Properties["k8s.io/k8s-version"] = "v1.32.0" },
	} {
		if before == hash(change) {
			t.Errorf("a chart is not rendered again when %s changes", what)
		}
	}
}

// A user who may override an object, but not render it, wrote "Data" instead. The check for data
// ignored it, and encoding/json took it for data.
func TestRead_MatchesFieldNamesExactly(t *testing.T) {
	for name, object := range map[string]any{"a ConfigMap": configMap(nil), "a Secret": secret(map[string][]byte{})} {
		raw := encoded(t, object)
		for _, field := range []string{`"Data":{"values.yaml":"YTogMQ=="}`, `"binarydata":{"values.yaml":"YTogMQ=="}`, `"BINARYDATA":{"values.yaml":"YTogMQ=="}`} {
			disguised := append(slices.Clone(raw[:len(raw)-1]), ","+field+"}"...)
			r, err := Read(disguised, west(), "")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(r.Values) > 0 {
				t.Errorf("%s with %s is rendered with %s", name, field, r.Values)
			}
		}
	}
}

func TestValuesOnly_RefusesOtherChanges(t *testing.T) {
	before := encoded(t, configMap(map[string]string{KeyValues: "a: 1"}))
	for name, tc := range map[string]struct {
		object *corev1.ConfigMap
		fits   bool
	}{
		"values":       {object: configMap(map[string]string{KeyValues: "a: 2"}), fits: true},
		"no values":    {object: configMap(nil), fits: true},
		"a namespace":  {object: configMap(map[string]string{KeyNamespace: "kube-system"})},
		"a template":   {object: configMap(map[string]string{KeyValuesTemplate: "{{ x }}"})},
		"another name": {object: func() *corev1.ConfigMap { c := configMap(nil); c.ObjectMeta = meta("b"); return c }()},
		"another chart": {object: func() *corev1.ConfigMap {
			c := configMap(nil)
			c.BinaryData[KeyPackage] = []byte("evil")
			return c
		}()},
	} {
		if err := ValuesOnly(before, encoded(t, tc.object)); (err == nil) != tc.fits {
			t.Errorf("overrides that change %s: error = %v", name, err)
		}
	}
}

// Works store the hash. Another value would render every chart again.
func TestHash_StaysTheSame(t *testing.T) {
	release := &Release{Name: "cni", Namespace: "addons", Member: Member{Name: "member-1"}}
	got, err := release.Hash()
	if want := "340eb059e72078213399a9d75f8ec09ed3c8adc26b3d6a735398af404a55d1fa"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
