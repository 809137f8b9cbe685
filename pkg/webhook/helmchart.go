// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// HelmChartPolicy returns the ValidatingAdmissionPolicy, with its binding, for ConfigMaps
// and Secrets from which the gateway renders charts. A chart makes any object on members, by
// way of the gateway, and what it makes is not known before it is rendered: so RBAC on its
// objects cannot be asked, as for envelopes, and a right of its own is. It holds also while
// charts are not rendered, or they would be, with nobody asked, when that is switched on.
func HelmChartPolicy() []client.Object {
	annotation := func(object string) string {
		return fmt.Sprintf("%s.metadata.?annotations[?'%s']", object, placementv1beta1.HelmChartAnnotation)
	}
	// Only ConfigMaps have binaryData: dyn lets the API server look at both kinds.
	unchanged := strings.Join([]string{
		annotation("oldObject") + " == " + annotation("object"),
		"dyn(oldObject).?data == dyn(object).?data", "dyn(oldObject).?binaryData == dyn(object).?binaryData",
	}, " && ")
	return objectsOf(policy{
		name:      "fleetgate-helm-charts",
		resources: []k8sadmissionv1.NamedRuleWithOperations{on(writes, "", "v1", "configmaps", "secrets")},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "describes-a-chart", Expression: annotation("object") + ".hasValue()"},
			{Name: "changes-it", Expression: "oldObject == null || !(" + unchanged + ")"},
		},
		rules: []k8sadmissionv1.Validation{forbiddenSaying(
			fmt.Sprintf("authorizer.group('').resource(request.resource.resource).namespace(request.namespace).name(object.metadata.?name.orValue('')).check('%s').allowed()", placementv1beta1.RenderVerb),
			fmt.Sprintf("request.userInfo.username + ' may not %s ' + request.resource.resource + ' in namespace ' + request.namespace + ': annotation %s has a chart rendered from it, which may make anything on members'",
				placementv1beta1.RenderVerb, placementv1beta1.HelmChartAnnotation),
		)},
	})
}
