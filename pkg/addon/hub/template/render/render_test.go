// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

const agent = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: agent, namespace: agents}, spec: {template: {spec: {
  initContainers: [{name: first, image: quay.io/ocm/first}],
  containers: [{name: main, image: "quay.io/ocm/agent:v1", args: ["--cluster={{CLUSTER_NAME}}", "--hub={{HUB_KUBECONFIG}}", "--x={{unknown}}"], env: [{name: LOG, value: "{{LOG}}"}]}]}}}}`

// inputs are an add-on named dns of the cluster edge with these manifests in YAML.
func inputs(t testing.TB, manifests ...string) Inputs {
	t.Helper()
	template := &addonv1alpha1.AddOnTemplate{}
	for _, text := range manifests {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		manifest := workv1.Manifest{}
		manifest.Raw = raw
		template.Spec.AgentSpec.Workload.Manifests = append(template.Spec.AgentSpec.Workload.Manifests, manifest)
	}
	return Inputs{AddOn: "dns", Cluster: "edge", Template: template}
}

func configured(in Inputs, config addonv1alpha1.AddOnDeploymentConfigSpec) Inputs {
	in.Config = &config
	return in
}

func registered(in Inputs) Inputs {
	in.Template.Spec.Registration = []addonv1alpha1.RegistrationSpec{
		{Type: addonv1alpha1.RegistrationKubeClient},
		{Type: addonv1alpha1.RegistrationCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{SignerName: "example.com/dns"}},
	}
	return in
}

// text is the manifests, one in each line.
func text(t *testing.T, spec workv1.ManifestWorkSpec) string {
	t.Helper()
	var all []string
	for _, m := range spec.Workload.Manifests {
		all = append(all, string(m.Raw))
	}
	return strings.Join(all, "\n")
}

func TestRender_WritesWhatTheConfigurationSays(t *testing.T) {
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
	for name, tc := range map[string]struct {
		in       Inputs
		has, not []string
	}{
		"nothing": {
			inputs(t, agent),
			[]string{`"--cluster=edge","--hub=","--x="`, `{"name":"CLUSTER_NAME","value":"edge"}`, `"namespace":"agents"`},
			[]string{"INSTALL_NAMESPACE", "HUB_KUBECONFIG", "volumes", "PROXY", `"resources"`},
		},
		"registrations": {
			registered(inputs(t, agent)),
			[]string{
				`"--hub=/managed/hub-kubeconfig/kubeconfig"`, `{"name":"HUB_KUBECONFIG","value":"/managed/hub-kubeconfig/kubeconfig"}`,
				`{"mountPath":"/managed/hub-kubeconfig","name":"hub-kubeconfig"}`, `{"name":"hub-kubeconfig","secret":{"secretName":"dns-hub-kubeconfig"}}`,
				`{"mountPath":"/managed/example.com-dns","name":"cert-example-com-dns"}`, `{"name":"cert-example-com-dns","secret":{"secretName":"dns-example.com-dns-client-cert"}}`,
			}, nil,
		},
		"variables, which do not replace built-in ones, and are texts": {
			configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{
				{Name: "LOG", Value: `","privileged":"{{CLUSTER_NAME}}`}, {Name: "CLUSTER_NAME", Value: "other"},
			}}),
			[]string{`{"name":"LOG","value":"\",\"privileged\":\"{{CLUSTER_NAME}}"}`, `"--cluster=edge"`}, []string{"other"},
		},
		"a namespace": {
			configured(inputs(t, `{apiVersion: v1, kind: Namespace, metadata: {name: agents}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: more}}`, agent,
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: dns}, subjects: [{kind: ServiceAccount, name: a, namespace: agents}, {kind: Group, name: g}]}`),
				addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "own"}),
			[]string{`"kind":"Namespace","metadata":{"name":"own"}`, `"namespace":"own"`, `{"name":"INSTALL_NAMESPACE","value":"own"}`, `{"kind":"Group","name":"g"}`}, []string{"agents", `"more"`},
		},
		"nodes": {
			configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{
				NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []addonv1alpha1.Toleration{{Key: "infra", Operator: "Exists"}},
			}}),
			[]string{`"nodeSelector":{"disk":"ssd"}`, `"tolerations":[{"key":"infra","operator":"Exists"}]`}, nil,
		},
		"tolerations only": {
			configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{Tolerations: []addonv1alpha1.Toleration{{Operator: "Exists"}}}}),
			[]string{`"tolerations":[{"operator":"Exists"}]`}, []string{"nodeSelector"},
		},
		"a proxy with its authority": {
			configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "own", ProxyConfig: addonv1alpha1.ProxyConfig{HTTPSProxy: "http://proxy:3128", NoProxy: "a,b", CABundle: []byte("PEM")}}),
			[]string{
				`{"name":"HTTPS_PROXY","value":"http://proxy:3128"},{"name":"https_proxy","value":"http://proxy:3128"},{"name":"NO_PROXY","value":"a,b"},{"name":"no_proxy","value":"a,b"},{"name":"CA_BUNDLE_FILE_PATH","value":"/managed/proxy-ca/ca-bundle.crt"}`,
				`{"configMap":{"name":"dns-proxy-ca"},"name":"proxy-ca-bundle"}`, `{"mountPath":"/managed/proxy-ca","name":"proxy-ca-bundle"}`,
				`{"apiVersion":"v1","data":{"ca-bundle.crt":"PEM"},"kind":"ConfigMap","metadata":{"name":"dns-proxy-ca","namespace":"own"}}`,
			}, []string{`"HTTP_PROXY"`},
		},
		"resources, by the last that matches": {
			configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{
				{ContainerID: "*:*:*", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}, {ContainerID: "deployments:*:main", Resources: requests},
				{ContainerID: "daemonsets:agent:main"}, {ContainerID: "deployments:agent:mai"},
			}}),
			[]string{`"resources":{"requests":{"memory":"64Mi"}}`}, []string{"limits"},
		},
		"registries of the configuration, not of the cluster": {
			configured(Inputs{AddOn: "dns", Cluster: "edge", Template: inputs(t, agent).Template, Mirrors: `{"registries":[{"source":"quay.io","mirror":"cluster.example"}]}`},
				addonv1alpha1.AddOnDeploymentConfigSpec{Registries: []addonv1alpha1.ImageMirror{{Source: "quay.io/ocm/", Mirror: "mirror.example/x/"}}}),
			[]string{`"image":"mirror.example/x/agent:v1"`, `"image":"mirror.example/x/first"`}, []string{"cluster.example"},
		},
		"registries of the cluster": {
			Inputs{AddOn: "dns", Cluster: "edge", Template: inputs(t, agent).Template, Mirrors: `{"registries":[{"source":"quay.io","mirror":"cluster.example"},{"source":"ghcr.io","mirror":"other"}]}`},
			[]string{`"image":"cluster.example/ocm/agent:v1"`}, []string{"other"},
		},
		"one registry for all": {
			Inputs{AddOn: "dns", Cluster: "edge", Template: inputs(t, agent).Template, Mirrors: `{"registries":[{"mirror":"cluster.example/all"}]}`},
			[]string{`"image":"cluster.example/all/agent:v1"`}, nil,
		},
		"a number of replicas": {
			configured(inputs(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: agent}, spec: {replicas: "{{N}}", template: {spec: {containers: []}}}}`),
				addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "N", Value: "3"}}}),
			[]string{`"replicas":3`}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.in.Template.DeepCopy()
			got, err := Render(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			all := text(t, got.Deploy)
			for _, part := range tc.has {
				if !strings.Contains(all, part) {
					t.Errorf("%s is missing in\n%s", part, all)
				}
			}
			for _, part := range tc.not {
				if strings.Contains(all, part) {
					t.Errorf("%s is in\n%s", part, all)
				}
			}
			if diff := cmp.Diff(before, tc.in.Template); diff != "" {
				t.Errorf("the template was changed: %s", diff)
			}
		})
	}
}

func TestRender_DividesManifestsBetweenWorks(t *testing.T) {
	in := inputs(t, agent,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: node, namespace: agents}, spec: {template: {spec: {containers: []}}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: none, namespace: agents}, spec: {replicas: 0, template: {spec: {containers: []}}}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: stays, namespace: agents, annotations: {addon.open-cluster-management.io/deletion-orphan: ""}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: cleanup, namespace: agents, annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: regular, namespace: agents}}`)
	id := func(resource, name string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Group: "apps", Resource: resource, Namespace: "agents", Name: name}
	}
	in.Template.Spec.AgentSpec.ManifestConfigs = []workv1.ManifestConfigOption{
		{ResourceIdentifier: id("deployments", "agent"), UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyServerSideApply}, FeedbackRules: []workv1.FeedbackRule{
			{Type: workv1.FeedbackWellKnownStatus}, {Type: workv1.FeedbackJSONPaths},
		}},
		{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "serviceaccounts", Namespace: "agents", Name: "stays"}},
	}
	got, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	want := &Rendered{Namespace: "agents", Probes: []workv1.ResourceIdentifier{id("deployments", "agent"), id("daemonsets", "node")}}
	want.Deploy.ManifestConfigs = []workv1.ManifestConfigOption{
		feedback(id("deployments", "agent")), feedback(id("daemonsets", "node")), feedback(id("deployments", "none")), in.Template.Spec.AgentSpec.ManifestConfigs[1],
	}
	want.Deploy.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyServerSideApply}
	want.Deploy.ManifestConfigs[0].FeedbackRules = append(want.Deploy.ManifestConfigs[0].FeedbackRules, workv1.FeedbackRule{Type: workv1.FeedbackJSONPaths})
	want.Deploy.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{
		OrphaningRules: []workv1.OrphaningRule{{Resource: "serviceaccounts", Namespace: "agents", Name: "stays"}},
	}}
	want.Hook.ManifestConfigs = []workv1.ManifestConfigOption{feedback(workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "agents", Name: "cleanup"})}
	if n := len(got.Deploy.Workload.Manifests); n != 5 || len(got.Hook.Workload.Manifests) != 1 {
		t.Errorf("%d and %d manifests", n, len(got.Hook.Workload.Manifests))
	}
	got.Deploy.Workload, got.Hook.Workload = workv1.ManifestsTemplate{}, workv1.ManifestsTemplate{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRender_FindsTheNamespaceOfTheAgent(t *testing.T) {
	daemon := `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: node, namespace: nodes}, spec: {template: {spec: {}}}}`
	for name, tc := range map[string]struct {
		in   Inputs
		want string
	}{
		"no workload":       {inputs(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}}`), "open-cluster-management-agent-addon"},
		"a DaemonSet":       {inputs(t, daemon), "nodes"},
		"a Deployment":      {inputs(t, daemon, agent), "agents"},
		"the configuration": {configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "own"}), "own"},
		"an empty one":      {configured(inputs(t, agent), addonv1alpha1.AddOnDeploymentConfigSpec{}), "agents"},
	} {
		if got, err := Render(tc.in); err != nil || got.Namespace != tc.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRender_RefusesWithTheCause(t *testing.T) {
	many := inputs(t)
	many.Template.Spec.AgentSpec.Workload.Manifests = make([]workv1.Manifest, mostManifests+1)
	signers := inputs(t)
	signers.Template.Spec.Registration = make([]addonv1alpha1.RegistrationSpec, mostRegistrations+1)
	containers := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [` + strings.Repeat("{name: c},", mostContainers) + `{name: c}]}}}}`
	hooks := slices.Repeat([]string{`{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {addon.open-cluster-management.io/addon-pre-delete: "", x: "` + strings.Repeat("x", mostBytes*3/5) + `"}}, spec: {containers: []}}`}, 2)
	bomb := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "` + strings.Repeat("{{X}}", 1000) + `"}}`
	variable := func(value string) addonv1alpha1.AddOnDeploymentConfigSpec {
		return addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "X", Value: value}}}
	}
	for name, tc := range map[string]struct {
		in   Inputs
		want string
	}{
		"many manifests":          {many, "it has 501 manifests, the limit is 500"},
		"many registrations":      {signers, "it has 21 registrations, the limit is 20"},
		"many containers":         {inputs(t, containers), "more than 100 containers"},
		"a large manifest":        {inputs(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "`+strings.Repeat("x", mostBytes)+`"}}`), "manifest 0, ConfigMap a: it has more than 512000 bytes"},
		"a large template":        {inputs(t, slices.Repeat([]string{filled("a", mostBytes*3/5)}, 7)...), "manifest 6: the manifests have more than 2048000 bytes: use several add-ons"},
		"large hooks":             {inputs(t, hooks...), "the manifests for before the deletion have more than 512000 bytes"},
		"a variable that expands": {configured(inputs(t, bomb), variable(strings.Repeat("x", 4096))), "more than 2048000 bytes"},
		"a large configuration":   {configured(inputs(t), variable(strings.Repeat("x", mostConfigBytes))), "the AddOnDeploymentConfig has"},
		"an open variable":        {inputs(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{X"}}`), "a text has {{ without }}"},
		"no name":                 {inputs(t, `{apiVersion: v1, kind: ConfigMap}`), "manifest 0: it has no apiVersion, kind or metadata.name"},
		"no object":               {inputs(t, `[a]`), "it is no JSON object"},
		"keys that become one":    {configured(inputs(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {"{{X}}": "1", k: "2"}}`), variable("k")), "two keys of an object are the same"},
		"replicas":                {inputs(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: x}}`), "spec.replicas is no number"},
		"a workload without Pods": {inputs(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}`), "manifest 0, Deployment a: spec.template.spec is no object"},
		"containers of a kind":    {inputs(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: {}}}}}`), "containers is no list"},
		"the cluster's mirrors":   {Inputs{AddOn: "dns", Cluster: "edge", Template: inputs(t, agent).Template, Mirrors: "{"}, `annotation open-cluster-management.io/image-registries of ManagedCluster "edge" is invalid`},
	} {
		got, err := Render(tc.in)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzRender: hostile templates and configurations are rendered within the limits, or refused.
func FuzzRender(f *testing.F) {
	seed := inputs(f, agent, `{apiVersion: v1, kind: Namespace, metadata: {name: agents}}`)
	config, err := json.Marshal(addonv1alpha1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: "own", ProxyConfig: addonv1alpha1.ProxyConfig{HTTPProxy: "http://p", CABundle: []byte("x")}, Registries: []addonv1alpha1.ImageMirror{{Source: "a", Mirror: "b"}},
		CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "LOG", Value: "{{LOG}}"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range seed.Template.Spec.AgentSpec.Workload.Manifests {
		f.Add(m.Raw, config, "")
		f.Add(m.Raw, []byte("{}"), `{"registries":[{"mirror":""}]}`)
	}
	f.Fuzz(func(t *testing.T, raw, config []byte, mirrors string) {
		in := registered(inputs(t))
		in.Mirrors, in.Config = mirrors, &addonv1alpha1.AddOnDeploymentConfigSpec{}
		// The API refuses quantities that take minutes to decode.
		if strings.Contains(strings.ToLower(string(config)), "resource") || json.Unmarshal(config, in.Config) != nil {
			in.Config = nil
		}
		manifest := workv1.Manifest{}
		manifest.Raw = raw
		in.Template.Spec.AgentSpec.Workload.Manifests = []workv1.Manifest{manifest, manifest}
		got, err := Render(in)
		if err != nil {
			return
		}
		size := 0
		for _, m := range slices.Concat(got.Deploy.Workload.Manifests, got.Hook.Workload.Manifests) {
			if size += len(m.Raw); !json.Valid(m.Raw) {
				t.Errorf("no JSON: %s", m.Raw)
			}
		}
		if size > mostBytes {
			t.Errorf("%d bytes", size)
		}
		again, err := Render(in)
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("rendered again: %v\n%s", err, diff)
		}
	})
}
