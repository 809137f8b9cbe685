// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// TestPoliciesNameWhatTheCodeNames: policies are files, and write out what the code has
// names for.
func TestPoliciesNameWhatTheCodeNames(t *testing.T) {
	p := policies.Parameters{TokenLifetime: time.Hour}
	named := map[string][]string{
		"fleetgate-member-token-requests": {clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.AgentAccount, clusterv1beta1.AgentCredentialSecret, BypassGroup, BypassResource, BypassVerb},
		"fleetgate-member-secrets": {
			clusterv1beta1.MemberNamespacePrefix, BypassGroup, BypassResource, authenticationv1beta1.LabelManagedServiceAccount, authenticationv1beta1.LabelManagedServiceAccountValue,
			authenticationv1beta1.SecretKeyCA, authenticationv1beta1.SecretKeyToken,
			// data holds base64: four characters for three bytes, each of two values filled up.
			fmt.Sprint((authenticationv1beta1.MaxSecretBytes + 4) / 3 * 4), fmt.Sprint(authenticationv1beta1.MaxSecretBytes),
		},
		"fleetgate-member-works":              {clusterv1beta1.MemberNamespacePrefix, placementv1beta1.GroupName, placementv1beta1.WorkCleanupFinalizer, placementv1beta1.EpochAnnotation, BypassGroup, BypassResource},
		"fleetgate-member-sizes":              {clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.AgentEventName(0), clusterv1beta1.AgentEventName(clusterv1beta1.MaxAgentEvents - 1), BypassGroup, BypassResource},
		"fleetgate-deliveries":                {placementv1beta1.GroupName, clusterv1beta1.MemberNamespacePrefix, BypassGroup, BypassDeliveries, BypassVerb},
		"fleetgate-run-status":                {placementv1beta1.GroupName, BypassGroup, BypassDeliveries, BypassVerb},
		"fleetgate-imported-agents":           {registrationv1alpha1.GroupName},
		"fleetgate-registrations":             {registrationv1alpha1.GroupName, registrationv1alpha1.LabelRegistrationToken},
		"fleetgate-member-identities":         {clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.GroupName, placementv1beta1.GroupName, registrationv1alpha1.GroupName, authenticationv1beta1.GroupVersion.Group},
		"fleetgate-member-namespaces":         {clusterv1beta1.MemberNamespacePrefix, BypassGroup, BypassResource},
		"fleetgate-reserved-keys":             {clusterv1beta1.GroupName, registrationv1alpha1.GroupName, AnnotationBypass, BypassGroup, BypassResource},
		"fleetgate-bypassed-rules":            {placementv1beta1.GroupName, AnnotationBypass, BypassGroup, BypassWebhooks},
		"fleetgate-bypassed-works":            {workv1.GroupName, AnnotationBypass, BypassGroup, BypassWebhooks, ManifestWorkConfiguration, ReplicaSetConfiguration},
		"fleetgate-manifestworks":             {workv1.GroupName, workv1.ManifestWorkFinalizer, clusterv1beta1.MemberNamespacePrefix},
		"fleetgate-agent-secrets":             {clusterv1beta1.MemberNamespacePrefix, authenticationv1beta1.GroupVersion.Group},
		"fleetgate-membercluster-origin":      {registration.AnnotationClusterUID, registrationv1alpha1.AnnotationCluster, registrationv1alpha1.AnnotationClusterNamespace},
		"fleetgate-gateway-account":           {clusterv1beta1.MemberNamespacePrefix},
		"fleetgate-agent-add-ons":             {addonv1alpha1.GroupName, addonv1alpha1.FleetgateAgent, workv1.GroupName},
		"fleetgate-helm-charts":               {placementv1beta1.HelmChartAnnotation, placementv1beta1.RenderVerb},
		"fleetgate-placement-authors":         {placementv1beta1.GroupName, placementv1beta1.AuthorMayAnnotation, `{"author":"`, BypassGroup, BypassResource},
		"fleetgate-selected-workloads":        {placementv1beta1.GroupName, BypassGroup, BypassGuardRails},
		"fleetgate-guard-reserved-namespaces": {clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.SystemNamespace},
		"fleetgate-guard-member-objects":      {clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.SystemNamespace},
		"fleetgate-confirm-delete-placements": {policies.ConfirmDeleteAnnotation},
		"fleetgate-confirm-delete-namespaces": {policies.ConfirmDeleteAnnotation},
		"fleetgate-confirm-delete-decisions":  {policies.ConfirmDeleteAnnotation, ocmclusterv1beta1.GroupName},
		"fleetgate-confirm-delete-clusters":   {policies.ConfirmDeleteAnnotation, ocmclusterv1beta1.GroupName},
		"fleetgate-definitions":               {policies.ConfirmDeleteAnnotation, install.LabelManagedBy, install.ManagedBy, placementv1beta1.GroupName, clusterv1beta1.GroupName},
	}
	for _, own := range ownKinds() {
		named["fleetgate-bypassed-rules"] = append(named["fleetgate-bypassed-rules"], fmt.Sprintf("'%s': '%s'", own.resource, own.webhook), "- "+own.resource+"\n")
	}
	all := append(allPolicies(), policies.ServiceAccounts()...)
	all = append(append(all, policies.Registration()...), policies.ConfirmDeleteDeny.Of(p)...)
	all = append(append(all, policies.ConfirmDeleteDeny.OfDecisions(p)...), policies.Klusterlets()...)
	all = append(all, policies.ConfirmDeleteDeny.OfClusters()...)
	seen := map[string]bool{} // Some are of several modes.
	for _, object := range all {
		policy, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok || named[policy.Name] == nil {
			continue
		}
		seen[policy.Name] = true
		text := textOf(t, policy)
		for _, name := range named[policy.Name] {
			if !strings.Contains(text, name) {
				t.Errorf("%s does not name %q", policy.Name, name)
			}
		}
	}
	if len(seen) != len(named) {
		t.Errorf("saw %d of %d policies", len(seen), len(named))
	}
}

// textOf is the policy with its expressions as they are written, behind it.
func textOf(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	t.Helper()
	content, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, condition := range policy.Spec.MatchConditions {
		text += "\n" + condition.Expression
	}
	for _, rule := range policy.Spec.Validations {
		text += "\n" + rule.Expression
	}
	return text
}
