// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Parameters are what differs between hubs. A set of policies reads those that its files
// name, the others may be left out.
type Parameters struct {
	// TokenLifetime is how long a token of a member's account may live, in whole seconds.
	TokenLifetime time.Duration
	// GatewayUser is the gateway's account, as the user that the API server knows it as.
	GatewayUser string
	// GatewayNamespace is where the gateway runs.
	GatewayNamespace string
	// ArgoCD is the account that Argo CD reaches members by.
	ArgoCD types.NamespacedName
	// ConfirmDeleteMembers is on how many members a placement may be and still be deleted
	// without a warning.
	ConfirmDeleteMembers int
	// referenceMode is set by Definitions.
	referenceMode bool
}

// A parameter as a file may name it.
type parameter struct {
	// literal stands in expressions, text in messages.
	literal, text string
}

// number and text make parameters. Go's escapes are CEL's too.
func number(n int64) parameter { return parameter{strconv.FormatInt(n, 10), strconv.FormatInt(n, 10)} }
func text(s string) parameter  { return parameter{strconv.Quote(s), s} }

func (p Parameters) byName() map[string]parameter {
	return map[string]parameter{
		"tokenSeconds":         number(int64(p.TokenLifetime.Seconds())),
		"tokenLifetime":        text(p.TokenLifetime.String()),
		"gatewayUser":          text(p.GatewayUser),
		"gatewayNamespace":     text(p.GatewayNamespace),
		"argoCDNamespace":      text(p.ArgoCD.Namespace),
		"argoCDAccount":        text(p.ArgoCD.Name),
		"confirmDeleteMembers": number(int64(p.ConfirmDeleteMembers)),
		"referenceMode":        {strconv.FormatBool(p.referenceMode), strconv.FormatBool(p.referenceMode)},
	}
}

// objects returns the policies of these names, without the prefix that all have, and
// their bindings. It panics if a file is not what it should be: which files there are is
// decided when the program is built, and tests render each.
func (p Parameters) objects(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		policy, binding, err := p.read(name + ".yaml")
		if err != nil {
			panic(err)
		}
		objects = append(objects, policy, binding)
	}
	return objects
}

func (p Parameters) read(file string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	content, err := files.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a policy: %w", err)
	}
	first, second, found := bytes.Cut(content, []byte("\n---\n"))
	if !found {
		return nil, nil, fmt.Errorf("%s has no binding behind its policy", file)
	}
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := yaml.UnmarshalStrict(first, policy); err != nil {
		return nil, nil, fmt.Errorf("reading the policy in %s: %w", file, err)
	}
	if err := yaml.UnmarshalStrict(second, binding); err != nil {
		return nil, nil, fmt.Errorf("reading the binding in %s: %w", file, err)
	}
	if err := p.fillIn(&policy.Spec); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return policy, binding, nil
}

// fillIn replaces parameters after the YAML was read, so that none can end a line of it.
func (p Parameters) fillIn(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) error {
	var expressions, messages []*string
	for i := range spec.MatchConditions {
		expressions = append(expressions, &spec.MatchConditions[i].Expression)
	}
	for i := range spec.Variables {
		expressions = append(expressions, &spec.Variables[i].Expression)
	}
	for i := range spec.Validations {
		expressions = append(expressions, &spec.Validations[i].Expression, &spec.Validations[i].MessageExpression)
		messages = append(messages, &spec.Validations[i].Message)
	}
	for i := range spec.AuditAnnotations {
		expressions = append(expressions, &spec.AuditAnnotations[i].ValueExpression)
	}
	known := p.byName()
	if err := replace(expressions, known, func(p parameter) string { return p.literal }); err != nil {
		return err
	}
	return replace(messages, known, func(p parameter) string { return p.text })
}

func replace(texts []*string, known map[string]parameter, form func(parameter) string) error {
	placeholder := regexp.MustCompile(`\$\(([^)]*)\)`)
	var unknown error
	for _, text := range texts {
		*text = placeholder.ReplaceAllStringFunc(*text, func(found string) string {
			name := found[2 : len(found)-1]
			value, ok := known[name]
			if !ok {
				unknown = fmt.Errorf("%q is no parameter", name)
			}
			return form(value)
		})
	}
	return unknown
}
