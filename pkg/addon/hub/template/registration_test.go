// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const own = "system:open-cluster-management:cluster:edge:addon:dns"

func registering(specs ...addonv1alpha1.RegistrationSpec) *addonv1alpha1.AddOnTemplate {
	template := &addonv1alpha1.AddOnTemplate{}
	template.Spec.Registration = specs
	return template
}

func kubeClient(permissions ...addonv1alpha1.HubPermissionConfig) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationKubeClient, KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions}}
}

func customSigner(subject *addonv1alpha1.Subject) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{SignerName: "example.com/dns", Subject: subject}}
}

func inCluster(role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.PermissionCurrentCluster, CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: role}}
}

func inNamespace(namespace, kind, role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.PermissionSingleNamespace, SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
		Namespace: namespace, RoleRef: addonv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}}
}

func TestRegistrationsOf_NamesTheAgentOfTheCluster(t *testing.T) {
	agent := addonv1alpha1.Subject{User: own + ":agent:dns-agent", Groups: []string{own, "system:open-cluster-management:addon:dns"}}
	subject := addonv1alpha1.Subject{User: "user", Groups: []string{"g"}, OrganizationUnits: []string{"o"}}
	for name, tc := range map[string]struct {
		template *addonv1alpha1.AddOnTemplate
		want     []addonv1alpha1.RegistrationConfig
	}{
		"none":              {registering(), nil},
		"the hub":           {registering(kubeClient(), kubeClient()), []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: agent}}},
		"a signer":          {registering(customSigner(nil)), []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/dns", Subject: agent}}},
		"a subject":         {registering(customSigner(&subject)), []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/dns", Subject: subject}}},
		"one without field": {registering(addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationCustomSigner}), nil},
	} {
		if diff := cmp.Diff(tc.want, registrationsOf(tc.template, "edge", "dns")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestReportedRegistrations_NameTheAccountOfTokens(t *testing.T) {
	agent := addonv1alpha1.Subject{User: own + ":agent:dns-agent", Groups: []string{own, "system:open-cluster-management:addon:dns"}}
	for driver, subject := range map[addonv1alpha1.KubeClientDriver]addonv1alpha1.Subject{
		"": agent, addonv1alpha1.DriverCSR: agent, addonv1alpha1.DriverToken: {User: "system:serviceaccount:edge:dns-agent"},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns"}}
		addOn.Status.KubeClientDriver = driver
		want := []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: subject}, {SignerName: "example.com/dns", Subject: agent}}
		if diff := cmp.Diff(want, reportedRegistrations(registering(kubeClient(), customSigner(nil)), addOn)); diff != "" {
			t.Errorf("driver %q (-want +got)\n%s", driver, diff)
		}
	}
}

func TestRefuseSigners_OfKubernetes(t *testing.T) {
	template := registering(kubeClient(), customSigner(nil))
	if err := refuseSigners(template); err != nil {
		t.Errorf("refused: %v", err)
	}
	for _, signer := range []string{"kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving"} {
		template := registering(customSigner(&addonv1alpha1.Subject{User: "administrator"}))
		template.Spec.Registration[0].CustomSigner.SignerName = signer
		if err := refuseSigners(template); err == nil {
			t.Errorf("%s is accepted", signer)
		}
		if got := registrationsOf(template, "edge", "dns"); len(got) > 0 {
			t.Errorf("registrations of %s: %v", signer, got)
		}
	}
}

func TestBindingsOf_AreForTheAgentOfTheClusterOnly(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns", UID: "1"}}
	template := registering(kubeClient(inCluster("a"), inCluster("b"), inCluster("a"), inNamespace("x", "Role", "c"), inNamespace("x", "ClusterRole", "a"),
		addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.PermissionCurrentCluster}), customSigner(nil))
	const name = "open-cluster-management:dns:"
	type line struct {
		binding string
		role    rbacv1.RoleRef
		owned   bool
	}
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	want := []line{
		{"edge/" + name + "clusterrole:agent", role("ClusterRole", "a"), true}, {"edge/" + name + "clusterrole:agent:b", role("ClusterRole", "b"), true},
		{"x/" + name + "role:agent:edge", role("Role", "c"), false}, {"x/" + name + "clusterrole:agent:edge", role("ClusterRole", "a"), false},
	}
	for driver, subject := range map[addonv1alpha1.KubeClientDriver]rbacv1.Subject{
		"":                        {APIGroup: rbacv1.GroupName, Kind: "Group", Name: own},
		addonv1alpha1.DriverCSR:   {APIGroup: rbacv1.GroupName, Kind: "Group", Name: own},
		addonv1alpha1.DriverToken: {Kind: "ServiceAccount", Namespace: "edge", Name: "dns-agent"},
	} {
		addOn.Status.KubeClientDriver = driver
		var got []line
		for _, binding := range bindingsOf(template, addOn) {
			got = append(got, line{binding.Namespace + "/" + binding.Name, binding.RoleRef, len(binding.OwnerReferences) == 1})
			if diff := cmp.Diff([]rbacv1.Subject{subject}, binding.Subjects); diff != "" {
				t.Errorf("%s: %s", driver, diff)
			}
			if addOnOf(binding)[0].String() != "edge/dns" {
				t.Errorf("%s is of %v", binding.Name, addOnOf(binding))
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", driver, diff)
		}
	}
}

func TestKeysOf_IgnoresIncompleteLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"ours":                     {map[string]string{addonv1alpha1.AddOnNameLabel: "dns", addonv1alpha1.AddOnNamespaceLabel: "edge"}, []string{"edge/dns"}},
		"without a cluster":        {map[string]string{addonv1alpha1.AddOnNameLabel: "dns"}, nil},
		"without an add-on":        {map[string]string{addonv1alpha1.AddOnNamespaceLabel: "edge"}, nil},
		"with an empty add-on":     {map[string]string{addonv1alpha1.AddOnNameLabel: "", addonv1alpha1.AddOnNamespaceLabel: "edge"}, nil},
		"of a template, otherwise": {map[string]string{addonv1alpha1.TemplateLabel: ""}, nil},
	} {
		got := keysOf(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Labels: tc.labels}})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestReference_CountsOnlyWhatASpecNames(t *testing.T) {
	named := addonv1alpha1.AddOnConfig{ConfigGroupResource: templates(), ConfigReferent: referent{Name: "t"}}
	inStatus := &addonv1alpha1.ManagedClusterAddOn{}
	inStatus.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: templates(), DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: referent{Name: "t"}, SpecHash: "1"}}}
	withSpec := inStatus.DeepCopy()
	withSpec.Spec.Configs = []addonv1alpha1.AddOnConfig{named}
	byDefault, byStrategy := &addonv1alpha1.ClusterManagementAddOn{}, &addonv1alpha1.ClusterManagementAddOn{}
	byDefault.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: templates(), DefaultConfig: &referent{Name: "t"}}}
	byStrategy.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{Configs: []addonv1alpha1.AddOnConfig{named}}}
	other := &addonv1alpha1.ClusterManagementAddOn{}
	other.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: templates(), DefaultConfig: &referent{Name: "u"}}, {ConfigGroupResource: DeploymentConfigs(), DefaultConfig: &referent{Name: "t"}}}
	for name, tc := range map[string]struct {
		addOn *addonv1alpha1.ManagedClusterAddOn
		of    *addonv1alpha1.ClusterManagementAddOn
		want  bool
	}{
		"the add-on of the cluster": {withSpec, other, true},
		"the default":               {inStatus, byDefault, true},
		"an install strategy":       {inStatus, byStrategy, true},
		"nobody":                    {inStatus, other, false},
	} {
		i := instance{ManagedClusterAddOn: tc.addOn, of: tc.of}
		if got := i.reference(templates()); (got != nil) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHasSubject_ComparesTheWholeSubject(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	want := addonv1alpha1.Subject{User: "user", Groups: []string{"b", "a"}, OrganizationUnits: []string{"o"}}
	for name, tc := range map[string]struct {
		subject pkix.Name
		want    bool
	}{
		"the same":          {pkix.Name{CommonName: "user", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"o"}}, true},
		"another user":      {pkix.Name{CommonName: "user2", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"o"}}, false},
		"a group less":      {pkix.Name{CommonName: "user", Organization: []string{"a"}, OrganizationalUnit: []string{"o"}}, false},
		"a group more":      {pkix.Name{CommonName: "user", Organization: []string{"a", "b", "system:masters"}, OrganizationalUnit: []string{"o"}}, false},
		"no unit":           {pkix.Name{CommonName: "user", Organization: []string{"a", "b"}}, false},
		"a country":         {pkix.Name{CommonName: "user", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"o"}, Country: []string{"c"}}, false},
		"two common names":  {pkix.Name{CommonName: "user", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"o"}, ExtraNames: []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 3}, Value: "admin"}, {Type: []int{2, 5, 4, 3}, Value: "user"}}}, false},
		"a name of its own": {pkix.Name{CommonName: "user", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"o"}, ExtraNames: []pkix.AttributeTypeAndValue{{Type: []int{1, 2, 3}, Value: "x"}}}, false},
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: tc.subject}, key)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificateRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasSubject(parsed, want); got != tc.want {
			t.Errorf("%s: %v (%s)", name, got, parsed.Subject)
		}
	}
}

func TestMissing_NamesTheRemedy(t *testing.T) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}}
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a right": {apierrors.NewForbidden(resource, "b", errors.New(`{Resources:["secrets"]}`)), `Resources:["secrets"]}. Bind ClusterRole "r" to ServiceAccount open-cluster-management-hub/addon-manager-controller-sa, or remove it from the AddOnTemplate`},
		"a role":  {apierrors.NewNotFound(resource, "r"), `not found. Create ClusterRole "r" and the namespace, or remove it`},
	} {
		refused := refusal.Of(missing(binding, tc.err))
		if refused == nil || refused.Reason != addonv1alpha1.ReasonSetPermissionFailed || !strings.Contains(refused.Message, tc.want) {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	if err := missing(binding, errors.New("timeout")); refusal.Of(err) != nil {
		t.Errorf("a failure is no refusal: %v", err)
	}
}
