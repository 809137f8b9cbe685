// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

const (
	planted  = "cGxhbnRlZC1zZWNyZXQ"
	jwt      = "eyJhbGciOiJSUzI1NiJ9.eyJ" + planted + ".sIg" + planted
	password = "hunter2" + planted
)

func now() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

func at(offset time.Duration) metav1.Time { return metav1.NewTime(now().Add(offset)) }

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// fleetOf is a hub with one thing of each kind well, and one in trouble, with credentials
// planted wherever somebody could have written one.
func fleetOf() []client.Object {
	planting := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": jwt}
	member := func(name string, joined metav1.ConditionStatus, why string, heartbeat time.Duration) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: planting},
			Status: clusterv1beta1.MemberClusterStatus{
				Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionJoined, joined, "Said", why)},
				Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
					clusterv1beta1.PropertyAgentVersion: {Value: "v0.1.0"}, clusterv1beta1.PropertyKubernetesVersion: {Value: "v1.36.3"}, "secret.example.org/token": {Value: jwt},
				},
				AgentStatus: []clusterv1beta1.AgentStatus{{
					Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: at(heartbeat),
					Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionHealthy, metav1.ConditionTrue, "Well", "")},
				}},
			},
		}
	}
	old := member("member-c", metav1.ConditionTrue, "", -4*time.Minute)
	old.Status.Conditions = append(old.Status.Conditions, condition(clusterv1beta1.ConditionAgentOutdated, metav1.ConditionTrue, "AgentTooOld", "the agent is v0.1.0"))
	return []client.Object{
		old,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: install.LeaderLease}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("gateway-0_1234"), RenewTime: ptr.To(metav1.NewMicroTime(now().Add(-2 * time.Second)))}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "memberclusters." + clusterv1beta1.GroupName, Annotations: map[string]string{install.AnnotationVersion: "v0.1.0"}}},
		&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.core.oam.dev", Labels: map[string]string{install.LabelManagedBy: install.ManagedBy}},
			Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{
				Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse, Reason: "FailedDiscoveryCheck", Message: "https://admin:" + password + "@10.0.0.1:8443 refused",
			}}},
		},
		member("member-a", metav1.ConditionTrue, "", -4*time.Minute),
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: clusterv1beta1.MemberNamespace("member-a"), Name: clusterv1beta1.AgentLease,
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "agent", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: coordinationv1.SchemeGroupVersion.String(),
					Time: ptr.To(at(-30 * time.Second)), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`),
				}},
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(now().Add(-30 * time.Second)))},
		},
		member("member-b", metav1.ConditionUnknown, "silent; its agent wrote Authorization: Bearer "+jwt, -time.Hour),
		&gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: "member-a"}, Status: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}},
		&gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: "member-c"}, Status: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}},
		&gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: "member-b"}, Status: gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}},
		&registrationv1alpha1.ClusterRegistrationToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "new-token", Annotations: planting},
			Status: registrationv1alpha1.ClusterRegistrationTokenStatus{Expires: ptr.To(at(23 * time.Hour)), Conditions: []metav1.Condition{
				condition(registrationv1alpha1.TokenConditionReady, metav1.ConditionTrue, "Issued", ""),
				condition(registrationv1alpha1.TokenConditionRestricted, metav1.ConditionFalse, "Permissive", "its holder can register any number of clusters")}},
		},
		&registrationv1alpha1.ClusterRegistrationToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "once"},
			Status: registrationv1alpha1.ClusterRegistrationTokenStatus{Conditions: []metav1.Condition{
				condition(registrationv1alpha1.TokenConditionReady, metav1.ConditionFalse, "UseLimitReached", "1 of 1"),
				condition(registrationv1alpha1.TokenConditionRestricted, metav1.ConditionTrue, "Restricted", "")}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "new-token"}, Data: map[string][]byte{"values": []byte(jwt)}},
		&registrationv1alpha1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "request-1", CreationTimestamp: at(-5 * time.Minute)},
			Spec:       registrationv1alpha1.ClusterRegistrationSpec{ClientID: password, ClientRandom: password},
			Status: registrationv1alpha1.ClusterRegistrationStatus{SealedToken: []byte(planted), Conditions: []metav1.Condition{
				condition(registrationv1alpha1.RegistrationConditionGranted, metav1.ConditionFalse, "KeyConflict", "has registered with another key")}},
		},
		&registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "edge"}, Status: registrationv1alpha1.ClusterStatus{
			Conditions: []registrationv1alpha1.GenericCondition{{Type: registrationv1alpha1.ClusterConditionImported, Status: corev1.ConditionFalse,
				Reason: "KubeConfigInvalid", Message: "it logs in with password=" + password}}}},
		&registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "core"}, Status: registrationv1alpha1.ClusterStatus{
			Conditions: []registrationv1alpha1.GenericCondition{{Type: registrationv1alpha1.ClusterConditionImported, Status: corev1.ConditionTrue}}}},
		&authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member-b", Name: "cluster-gateway"}, Status: authenticationv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: ptr.To(at(10 * time.Minute)),
			Conditions:          []metav1.Condition{condition(authenticationv1beta1.ConditionTokenReported, metav1.ConditionFalse, "Refused", "token="+password+" was refused")}}},
		&authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member-a", Name: "cluster-gateway"}, Status: authenticationv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: ptr.To(at(20 * time.Hour)), Conditions: []metav1.Condition{condition(authenticationv1beta1.ConditionTokenReported, metav1.ConditionTrue, "Reported", "")}}},
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: planting}, Status: placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{
			condition("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "Scheduled", ""),
			condition("ClusterResourcePlacementApplied", metav1.ConditionFalse, "ApplyFailed", "not applied on 2 cluster(s), see placementStatuses")},
			PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{
				{ClusterName: "member-a", Conditions: []metav1.Condition{
					condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonApplyInProgress, "Work \"shop-work\" is being applied")}},
				{ClusterName: "member-b", Conditions: []metav1.Condition{
					condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "NotAllWorkHaveBeenApplied", "Work \"shop-work\" is not applied")},
					FailedPlacements: []placementv1beta1.FailedResourcePlacement{{
						ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "settings"},
						Condition:          condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "ManifestApplyFailed", "-----BEGIN RSA PRIVATE KEY-----\n"+planted+"\n-----END RSA PRIVATE KEY----- in a manifest"),
					}}},
			}}},
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Status: placementv1beta1.PlacementStatus{
			ObservedResourceIndex: "0", Conditions: []metav1.Condition{
				condition("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "Scheduled", ""),
				condition("ClusterResourcePlacementAvailable", metav1.ConditionTrue, "ResourceAvailable", "")}}},
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Status: placementv1beta1.PlacementStatus{
			PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "member-a",
				Conditions: []metav1.Condition{condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "NotAllWorkHaveBeenApplied", "")},
				FailedPlacements: []placementv1beta1.FailedResourcePlacement{{
					ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "Deployment", Namespace: "shop", Name: "web"},
					Condition:          condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "ManifestApplyFailed", "exceeded quota: small"),
				}}}}}},
		&placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "older"}, Status: placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{
			condition(placementv1beta1.ConditionAuthorCheckSkipped, metav1.ConditionTrue, placementv1beta1.ReasonAuthorUnknown, "not checked")}}},
		&placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bounded"}, Status: placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{
			condition(placementv1beta1.ConditionResourcesWithheld, metav1.ConditionTrue, placementv1beta1.ReasonAuthorForbidden, "Selected and not placed: secrets")}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
			Name: policies.ValidatingConfiguration, Annotations: policies.AuthorsAnnotations(false)}},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e1"}, Type: corev1.EventTypeWarning, Count: 3, LastTimestamp: at(-time.Minute), Reason: "MemberSilent",
			Message:        `{"token":"` + password + `"}` + "\x1b[31m",
			InvolvedObject: corev1.ObjectReference{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MemberCluster", Name: "member-b"},
		},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e2"}, Type: corev1.EventTypeWarning, Reason: "BackOff",
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "of-somebody-else"}},
	}
}

func page(t *testing.T, funcs interceptor.Funcs) string {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, clusterv1beta1.AddToScheme,
		placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme, authenticationv1beta1.AddToScheme, gatewayv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(fleetOf()...).WithInterceptorFuncs(funcs).WithReturnManagedFields().
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	var out bytes.Buffer
	reporter := &Reporter{Hub: hub, Namespace: "fleet-system", Version: "v0.1.0 (0123456789ab)", HubVersion: "v1.36.3", Clock: clocktesting.NewFakePassiveClock(now())}
	if err := reporter.Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const want = `fleetgate v0.1.0 (0123456789ab), hub Kubernetes v1.36.3, 2026-01-31T12:00:00Z

GATEWAYS
LEASE              LEADER          RENEWED
fleetgate-gateway  gateway-0_1234  2s ago
CRD version: v0.1.0

PERMISSIVE SETTINGS
SETTING                                RISK
guard rails                            off: placed workloads can also run on the hub; start the gateway with --install and install.guardRails: selected or reference
registration policy                    open: 1 tokens without annotation fleetgate.io/approval approve clusters automatically; start the gateway with --registration-policy=strict
registration token clusters/new-token  its holder can register any number of clusters

APIS SERVED BY THE GATEWAY
APISERVICE                     AVAILABLE  REASON
v1alpha1.cluster.core.oam.dev  False      FailedDiscoveryCheck: https://[removed]@10.0.0.1:8443 refused

MEMBERS
MEMBER    JOINED   HEALTHY  HEARTBEAT  TUNNEL        AGENT   KUBERNETES  REASON
member-b  Unknown  True     60m ago    NotConnected  v0.1.0  v1.36.3     Said: silent; its agent wrote Authorization: Bearer [removed]
member-c  True     True     4m ago     connected     v0.1.0  v1.36.3     AgentTooOld: the agent is v0.1.0
member-a  True     True     30s ago    connected     v0.1.0  v1.36.3     -

REGISTRATION TOKENS
NAMESPACE  NAME       READY  EXPIRES  REASON
clusters   new-token  True   in 23h   -
clusters   once       False  never    UseLimitReached: 1 of 1

PENDING OR REJECTED REGISTRATIONS
NAMESPACE  CREATED  REASON
clusters   5m ago   KeyConflict: has registered with another key

FAILED IMPORTS
NAMESPACE  CLUSTER  REASON
clusters   edge     KubeConfigInvalid: it logs in with password=[removed]

SERVICE-ACCOUNT TOKENS THAT ARE MISSING OR EXPIRE WITHIN AN HOUR
NAMESPACE              NAME             REPORTED  EXPIRES  REASON
fleet-member-member-b  cluster-gateway  False     in 10m   Refused: token=[removed] was refused
valid tokens: 1

PLACEMENTS THAT ARE NOT AVAILABLE
PLACEMENT  CONDITION  REASON                                                                                                         REMEDY
quota      Applied    on member "member-a", Deployment shop/web: exceeded quota: small                                               raise the ResourceQuota named in the message on member member-a, or lower the requests of Deployment shop/web
shop       Applied    on member "member-b", ConfigMap shop/settings: [removed] in a manifest                                         kubectl fleetgate why shop
empty      Scheduled  spec.resourceSelectors match nothing on the hub, so nothing is placed: create what they name, or correct them  create the resources that spec.resourceSelectors of placement empty select on the hub, or correct the selectors
available placements: 2

PLACEMENTS WITHOUT A COMPLETE AUTHOR CHECK
PLACEMENT     CONDITION           REASON
shop/bounded  ResourcesWithheld   Selected and not placed: secrets
shop/older    AuthorCheckSkipped  not checked
author check disabled: the gateway runs with placement.authorizeAuthors: false, or does not support the check

RECENT WARNING EVENTS
LAST SEEN  COUNT  OBJECT                  MESSAGE
60s ago    3      MemberCluster member-b  MemberSilent: {"token":"[removed]"} [31m
`

func TestWrite_ProblemsFirstWithoutSecrets(t *testing.T) {
	got := page(t, interceptor.Funcs{
		Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, ok := into.(*corev1.Secret); ok {
				t.Errorf("Secret %s is read", key)
			}
			return hub.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, hub client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, ok := into.(*corev1.SecretList); ok {
				t.Error("Secrets are listed")
			}
			return hub.List(ctx, into, options...)
		},
	})
	if strings.Contains(got, planted) {
		t.Errorf("a planted secret is on the page:\n%s", got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestWrite_OmitsEnabledGuardRails(t *testing.T) {
	for _, mode := range []policies.GuardRails{policies.GuardRailsSelected, policies.GuardRailsReference} {
		got := page(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if installed, ok := into.(*admissionregistrationv1.ValidatingAdmissionPolicyList); ok {
				for _, object := range mode.Of(policies.Parameters{}) {
					installed.Items = append(installed.Items, admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}})
				}
				return nil
			}
			return hub.List(ctx, into, options...)
		}})
		if strings.Contains(got, "guard rails") {
			t.Errorf("they are %s and said to be off:\n%s", mode, got)
		}
	}
}

func TestWrite_HeartbeatsOfReportsWithoutLeases(t *testing.T) {
	got := page(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
		if _, ok := into.(*coordinationv1.LeaseList); ok {
			return errors.New("forbidden")
		}
		return hub.List(ctx, into, options...)
	}})
	for _, want := range []string{"member-a  True     True     4m ago", "heartbeats are from status reports and may be minutes old: listing the Leases of agents: forbidden"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestWrite_ReportsUnreadableSections(t *testing.T) {
	got := page(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("forbidden, Bearer " + jwt)
	}})
	const sections = 11
	if n := strings.Count(got, "could not be read: forbidden, Bearer [removed]"); n != sections || strings.Contains(got, planted) {
		t.Errorf("%d sections say that they could not be read, want %d:\n%s", n, sections, got)
	}
}

func TestClean_RemovesCredentials(t *testing.T) {
	tests := map[string]string{
		"password=" + password:                                 "password=[removed]",
		"clientSecret: '" + password + "' was refused":         "clientSecret: '[removed]' was refused",
		"authorization basic " + password:                      "authorization basic [removed]",
		"token " + jwt + " expired":                            "token [removed] expired",
		strings.Repeat("QUJD", 30):                             "[removed]",
		"-----BEGIN PRIVATE KEY-----\n" + planted:              "[removed]",
		"proxy http://user:" + password + "@proxy:3128 is off": "proxy http://[removed]@proxy:3128 is off",
		"the agent has no registration token":                  "the agent has no registration token",
		"Secret fleet-system/agent-credential is not there":    "Secret fleet-system/agent-credential is not there",
		"two\nlines\tand a bell\a":                             "two lines and a bell",
		strings.Repeat("word ", 100):                           strings.Repeat("word ", 47) + "wo...",
	}
	for given, want := range tests {
		if got := clean(given); got != want {
			t.Errorf("of %q remains %q, want %q", given, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("Bearer x")
	f.Add("-----BEGIN KEY-----")
	f.Fuzz(func(t *testing.T, text string) {
		got := clean(text)
		if strings.ContainsAny(got, "\n\r\x1b\t") || len([]rune(got)) > maxText+3 {
			t.Errorf("of %q remains %q", text, got)
		}
		if strings.Contains(clean(text+" "+jwt), jwt) {
			t.Errorf("a token behind %q is not taken out", text)
		}
	})
}
