// Code of a client that uses the types of openapi-typescript. It is compiled, not run.
import type { components, paths } from "./openapi";

type Rate = components["schemas"]["Rate"];
type Best = paths["/v1/rates/best"]["get"];

export const query: Best["parameters"]["query"] = { currency: "USD", operation: "buy", limit: 3 };

export function sides(rate: Rate): string {
  const sell: string | null = rate.sell;
  return sell ?? "none";
}

export function problems(error: Best["responses"][400]["content"]["application/json"]): (string | number)[] {
  return (error.error.details ?? []).flatMap((detail) => detail.path);
}

// @ts-expect-error: decimals are texts, not numbers
export const wrong: Rate["buy"] = 58.8;
