// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// remedy is what to do about what a message says.
type remedy struct {
	says *regexp.Regexp
	// do has {object}, {member} and {placement} for what the answer is about, {get} and {logs}
	// for the commands that show it.
	do string
}

// byMessage is looked through from the top: what is special stands before what is general.
// Messages are those of API servers, of kubelets and of our agent.
var byMessage = []remedy{
	{regexp.MustCompile(`has no kind |no matches for kind|could not find the requested resource|is not installed`),
		"install the CustomResourceDefinition on member {member}, or place it there too; the object follows by itself"},
	{regexp.MustCompile(`exceeded quota`),
		"raise the ResourceQuota that is named on member {member}, or have {object} ask for less"},
	{regexp.MustCompile(`its role lacks the rule|[Ff]orbidden: User\b.*(cannot|attempting)|is attempting to grant`),
		"give the agent's role on member {member} the right that is named, or do not place {object} there"},
	{regexp.MustCompile(`admission webhook .* denied|ValidatingAdmissionPolicy|violates PodSecurity|denied the request`),
		"change {object} as the member's admission demands, or that admission on member {member}"},
	{regexp.MustCompile(`failed calling webhook`),
		"repair the webhook that is named on member {member}, or remove its configuration there"},
	{regexp.MustCompile(`immutable|To have it deleted and made again|may not change once set|updates to .* are forbidden`),
		"undo the change of that field on the hub, or annotate {object} there with " + placementv1beta1.ImmutableChangeAnnotation + "=" + placementv1beta1.ImmutableChangeRecreate + " to have it deleted and made again"},
	{regexp.MustCompile(`ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|pull(ing)? image`),
		"correct the image of {object} on the hub, or give member {member} access to the registry"},
	{regexp.MustCompile(`CrashLoopBackOff|back-off .*restarting|exited with|OOMKilled|RunContainerError|CreateContainerError|CreateContainerConfigError`),
		"read its log: {logs}"},
	{regexp.MustCompile(`nodes are available|Unschedulable|Insufficient (cpu|memory|ephemeral)|no node`),
		"give member {member} nodes that fit, or have {object} ask for less"},
	{regexp.MustCompile(`because it is being terminated|is being deleted|finalizer`),
		"see on member {member} what holds the one that is being deleted: the controller of its finalizers"},
	{regexp.MustCompile(`namespaces? .*not found`),
		"place the namespace too, or make it on member {member}"},
	{regexp.MustCompile(`of another hub`),
		"give the agent of one of the two hubs a --hub-name; if that hub is gone, annotate the AppliedWork on member {member} with fleetgate.io/hub-"},
	{regexp.MustCompile(`[Tt]he placement is paused|placement .* is paused`),
		"take the annotation away: kubectl annotate clusterresourceplacement {placement} " + placementv1beta1.PausedAnnotation + "-"},
	{regexp.MustCompile(`member .* is paused`),
		"take the annotation away: kubectl annotate membercluster {member} " + placementv1beta1.PausedAnnotation + "-"},
	{regexp.MustCompile(`resourceSelectors match nothing`),
		"create on the hub what spec.resourceSelectors of {object} name, or correct them"},
	{regexp.MustCompile(`chart cannot be rendered|chart could not be fetched|chart takes more|may take charts`),
		"correct the chart, its values or where it is taken from on the hub"},
	{regexp.MustCompile(`[Ii]nvalid value|is invalid:|[Uu]nknown field|unmarshal|cannot be handled as`),
		"correct {object} on the hub: the message names the field"},
}

// byReason is for what no message gave away: the reason of the condition.
var byReason = map[string]string{
	placementv1beta1.ReasonNotTakenOver:                   "choose another whenToTakeOver than Never, or remove {object} on member {member}",
	placementv1beta1.ReasonFailedToTakeOver:               "see whenToTakeOver and allowCoOwnership of the placement, or remove {object} on member {member}",
	placementv1beta1.ReasonFoundDrifts:                    "undo the change on member {member}, bring it to the hub, or choose whenToApply Always: kubectl fleetgate diff {placement}",
	placementv1beta1.ReasonFoundDriftsInDegradedMode:      "correct {object} on the hub, which member {member} does not accept: kubectl fleetgate diff {placement}",
	placementv1beta1.ReasonDecodingErred:                  "correct {object} on the hub, or its envelope",
	placementv1beta1.ReasonFoundGenerateName:              "give {object} a name",
	placementv1beta1.ReasonDuplicated:                     "select {object} only once",
	placementv1beta1.ReasonNotAsWritten:                   "correct {object}, or the kind or webhook on member {member} that changed it, or annotate {object} with " + placementv1beta1.LeaveToMemberAnnotation + ": {get}",
	placementv1beta1.ReasonReserved:                       "take {object} out of the placement: that place is kept for fleetgate",
	placementv1beta1.ReasonFailedToFindObjInMemberCluster: "see whether the API server of member {member} answers for this kind: {get}",
	placementv1beta1.ReasonFailed:                         "look at {object} on member {member}: {get}",
	placementv1beta1.ReasonRepairsReverted:                "stop whoever writes {object} on member {member}, or take it out of the placement",
	placementv1beta1.ReasonOverriddenFailed:               "correct the override that is named",
	placementv1beta1.ReasonInvalidResourceSelectors:       "correct spec.resourceSelectors of placement {placement}",
	placementv1beta1.ReasonCompletionUnknown:              "look for what {object} has done; to run it again, change its spec",
	placementv1beta1.ReasonManifestNotAvailableYet:        "wait, or look at it: {get}",
	placementv1beta1.ReasonRolloutNotStartedYet:           "wait until the members that are updated now are available, or raise maxUnavailable: kubectl fleetgate tree {placement} --unwell",
	placementv1beta1.ReasonApplyInProgress:                "wait; if it lasts, see whether the member is there: kubectl fleetgate members {member}",
	placementv1beta1.ReasonSyncWorkFailed:                 "correct what the message names on the hub",
}

// defaultRemedy is for reasons that nobody has thought of.
const defaultRemedy = "look the reason up in docs/reasons.md, and at the object: {get}"

// remedyOfMessage is what to do about a message; empty if it gives nothing away.
func remedyOfMessage(message string) string {
	for _, r := range byMessage {
		if r.says.MatchString(message) {
			return r.do
		}
	}
	return ""
}

// remedyFor has an answer say what to do about a reason and a message.
func (a *Answer) remedyFor(reason, message, placement string) {
	do := remedyOfMessage(message)
	a.vague = do == ""
	a.Remedy = filled(cmp.Or(do, byReason[reason], defaultRemedy), *a, placement)
}

// filled says what a remedy is about.
func filled(do string, a Answer, placement string) string {
	if a.Member == "" {
		do = strings.ReplaceAll(do, "member {member}", "the member")
	}
	return strings.NewReplacer("{object}", Plain(a.Object), "{member}", Plain(a.Member), "{placement}", placement,
		"{get}", a.shownBy("get", placement), "{logs}", a.shownBy("logs", placement)).Replace(do)
}

// loggers are the kinds whose logs kubectl finds.
var loggers = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}

// harmless is what can stand in a command line as it is: members say what their objects are
// called.
var harmless = regexp.MustCompile(`^[A-Za-z0-9][-.:A-Za-z0-9]*$`)

// shownBy is the command that shows the object of an answer, as it can be run; the placement's
// tree where there is no such command.
func (a *Answer) shownBy(verb, placement string) string {
	switch {
	case a.Of != nil && a.Member != "" && harmless.MatchString(a.Of.Kind+a.Of.Group) && harmless.MatchString(a.Of.Name) && harmless.MatchString("n"+a.Of.Namespace):
	case placement != "" && a.Member != "":
		return "kubectl fleetgate tree " + placement + " --member " + a.Member
	case placement != "":
		return "kubectl fleetgate tree " + placement
	default:
		return "kubectl fleetgate members " + a.Member
	}
	if !slices.Contains(loggers, a.Of.Kind) {
		verb = "get"
	}
	kind := strings.ToLower(a.Of.Kind)
	if a.Of.Group != "" {
		kind += "." + a.Of.Group
	}
	command := "kubectl fleetgate " + verb + " " + kind + "/" + a.Of.Name
	if a.Of.Namespace != "" {
		command += " -n " + a.Of.Namespace
	}
	return command + " --member " + a.Member
}

// Remedy is what to do about a message of a placement's status; where that gives nothing away,
// the command that looks further.
func Remedy(message, object, member, placement string) string {
	do := remedyOfMessage(message)
	if do == "" {
		return "kubectl fleetgate why " + placement
	}
	return filled(do, Answer{Object: cmp.Or(object, "placement "+placement), Member: member}, placement)
}
